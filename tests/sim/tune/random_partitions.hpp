#pragma once

#include <vector>

#include "sim/tune/bucket_caps.hpp"
#include "tests/sim/predict/random_steps.hpp"

/// Gradients to be cut into buckets, drawn from a seed, and every way to cut them.
namespace ddpsim::fixtures {

/// The ends of every contiguous partition of `count` gradients: 2^(count - 1) of them.
template <typename Visit>
void for_each_partition(int count, Visit&& visit) {
  std::vector<int> ends;
  for (unsigned borders = 0; borders < (1u << (count - 1)); ++borders) {
    ends.clear();
    for (int end = 1; end < count; ++end)
      if (borders & (1u << (end - 1))) ends.push_back(end);
    ends.push_back(count);
    visit(ends);
  }
}

inline Buckets buckets_of(const StepModel& model, const std::vector<int>& ends) {
  Buckets buckets;
  int begin = 0;
  for (const int end : ends) {
    buckets.emplace_back(model.works.arrival.begin() + begin, model.works.arrival.begin() + end);
    begin = end;
  }
  return buckets;
}

/// Copies into buckets that take the device no time, here and there.
inline void free_some_copies(Dice& dice, StepModel& model) {
  for (KnownWork& copy : model.works.copy_in)
    if (dice.one_in(8)) copy = timed::taking(model, Operation::copy_in, Duration::zero());
}

/// In place of kernels of known time GEMMs that take as long (or up to 330 ns less) on the round
/// device, of which memory bounds anything from nothing to all.
///
/// An output of 1280 x 1280 fills the 100 SMs with tiles once. So for each of k it takes 2 x 1280 x
/// 1280 / 10 TFLOP/s = 327.68 ns; a byte takes 1 ps, and a launch ramps up for 2 us.
inline void bound_by_memory(Dice& dice, StepModel& model, std::vector<KnownWork>& kernels) {
  constexpr std::int64_t per_k = 327'680;
  for (KnownWork& kernel : kernels) {
    Work work = model.works.table[kernel.number];
    const std::int64_t quarters = dice.between(0, 4);
    const std::int64_t ramps = model.costs.synchronous ? 0 : work.launches * 2'000'000;
    const std::int64_t k = (work.known_time->count() - ramps) / per_k;
    if (k <= 0) continue;
    work.known_time.reset();
    work.gemm = Gemm{1280, 1280, k, 1};
    work.traffic = Bytes{quarters * k * per_k / 4};
    kernel.number = model.works.table.add(work);
  }
}

/// Kernels, gradients and launches of every kind; up to `most` gradients of one type.
inline StepModel random_one_type_model(Dice& dice, int most, bool interference) {
  Workload workload;
  workload.name = "random";
  Layer& layer = workload.layers.emplace_back();
  layer.forward.push_back(timed::kernel(dice.time(200)));
  std::vector<int> arrival;
  const int gradients = dice.between(1, most);
  for (int i = 0; i < gradients; ++i) {
    if (i == 0 || dice.one_in(2)) {
      const int launches = dice.between(1, 3);
      layer.backward.push_back(timed::kernel(dice.time(300), launches));
    }
    Parameter& parameter = workload.parameters.emplace_back();
    parameter.name = std::to_string(i);
    parameter.shape = {dice.between(1, dice.one_in(3) ? 2'000'000 : 5'000)};
    parameter.ready_after = static_cast<int>(layer.backward.size()) - 1;
    arrival.insert(arrival.begin() + dice.between(0, i), i);
  }
  if (dice.one_in(2)) workload.optimizer = dice.time(500);
  if (dice.one_in(4)) workload.arrival = arrival;  // hooks fire in another order than kernels end
  if (dice.one_in(4)) workload.buffers = {{dice.between(1, 5), {dice.between(4, 40'000)}}};
  check(workload);
  CalibratedCluster cluster = random_cluster(dice, interference);
  if (cluster.ranks_per_node.largest() < 2) cluster.ranks_per_node = 2;
  if (dice.one_in(2)) {  // no law: steps of any height, now and then down
    cluster.collectives = CollectiveModel::table;
    Duration time = std::chrono::microseconds{dice.between(1, 1000)};
    for (const std::int64_t size : {100, 3'000, 40'000, 900'000, 20'000'000}) {
      cluster.intra_node.all_reduce.emplace_back(Bytes{size}, time);
      time = dice.one_in(5) ? time / 2 : time + std::chrono::microseconds{dice.between(1, 1000)};
    }
  }
  if (interference && dice.one_in(2)) {  // slowdowns that rise and fall with the size
    cluster.interference.reset();
    cluster.calibration.emplace();
    cluster.calibration->ranks = cluster.ranks();
    for (const std::int64_t size : {1'000, 100'000, 5'000'000})
      cluster.calibration->interference.push_back(
          {Bytes{size}, dice.slowdown(), dice.slowdown(), double{dice.slowdown()}, 0});
  }
  StepModel model(workload, cluster, Optimizer::sgd);
  free_some_copies(dice, model);
  for (StepWorks::LayerWorks& works : model.works.layers)
    bound_by_memory(dice, model, works.backward);
  return model;
}

/// Up to twelve gradients of a few bytes, so that every cap can be tried, on a link to which bytes
/// matter.
inline StepModel small_model(Dice& dice, bool one_type, bool interference = false) {
  Workload workload;
  Layer& layer = workload.layers.emplace_back();
  for (int left = dice.between(1, 12); left > 0; --left) {
    if (layer.backward.empty() || dice.one_in(2))
      layer.backward.push_back(timed::kernel(dice.time(60)));
    Parameter& parameter = workload.parameters.emplace_back();
    parameter.name = std::to_string(left);
    parameter.shape = {dice.between(1, 15)};
    parameter.ready_after = static_cast<int>(layer.backward.size()) - 1;
    if (one_type) continue;
    parameter.dtype = all_dtypes[static_cast<std::size_t>(dice.between(0, 3))];
    parameter.sparse = dice.one_in(6);
  }
  check(workload);
  Cluster cluster = timed::ring(2, dice.time(10), Bandwidth{1e6 * dice.between(1, 5)});
  cluster.launch = {dice.time(5), dice.time(5), dice.time(2)};
  if (interference) cluster.interference = FixedInterference{dice.slowdown(), dice.slowdown()};
  return StepModel(workload, cluster, Optimizer::sgd);
}

inline Bytes total(const StepModel& model) {
  Bytes sum;
  for (const GradientInfo& gradient : model.works.gradients) sum += gradient.size;
  return sum;
}

}  // namespace ddpsim::fixtures
