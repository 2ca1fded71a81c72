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

inline Buckets buckets_of(const StepCosts& costs, const std::vector<int>& ends) {
  Buckets buckets;
  int begin = 0;
  for (const int end : ends) {
    buckets.emplace_back(costs.arrival.begin() + begin, costs.arrival.begin() + end);
    begin = end;
  }
  return buckets;
}

/// Kernels, gradients and launches of every kind; up to `most` gradients of one type.
inline StepCosts random_one_type_costs(Dice& dice, int most, bool interference) {
  Workload workload;
  workload.name = "random";
  Layer& layer = workload.layers.emplace_back();
  layer.forward.push_back(timed::kernel(dice.time(200)));
  std::vector<int> arrival;
  const int gradients = dice.between(1, most);
  for (int i = 0; i < gradients; ++i) {
    if (i == 0 || dice.one_in(2))
      layer.backward.push_back(timed::kernel(dice.time(300), dice.between(1, 3)));
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
  Cluster cluster = random_cluster(dice, interference);
  if (cluster.ranks_per_node < 2) cluster.ranks_per_node = 2;
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
  StepCosts costs(workload, cluster, Optimizer::sgd);
  for (std::size_t i = 0; i < costs.copy_in.size(); ++i)
    if (dice.one_in(8)) costs.copy_in[i].work = costs.copy_in[i].last_launch = Duration{};
  for (auto& layer_costs : costs.layers)
    for (KernelCost& cost : layer_costs.backward)
      cost.memory_fraction = static_cast<float>(dice.between(0, 4)) / 4;
  return costs;
}

/// Up to twelve gradients of a few bytes, so that every cap can be tried, on a link to which bytes
/// matter.
inline StepCosts small_costs(Dice& dice, bool one_type, bool interference = false) {
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
  return StepCosts(workload, cluster, Optimizer::sgd);
}

inline Bytes total(const StepCosts& costs) {
  Bytes sum;
  for (const GradientInfo& gradient : costs.gradients) sum += gradient.size;
  return sum;
}

}  // namespace ddpsim::fixtures
