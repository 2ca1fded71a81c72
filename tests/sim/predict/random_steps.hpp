#pragma once

#include <algorithm>
#include <string>

#include "model/parallel/order/build_job.hpp"
#include "tests/sim/engine/random_schedules.hpp"
#include "tests/sim/predict/models.hpp"

/// Workloads, clusters and trainings drawn from a seed.
namespace ddpsim::fixtures {

inline Workload random_workload(Dice& dice) {
  Workload workload;
  workload.name = "random";
  for (int layer = 0, layers = dice.between(1, 6); layer < layers; ++layer) {
    Layer& one = workload.layers.emplace_back();
    for (int left = dice.between(0, 3); left > 0; --left)
      one.forward.push_back(timed::kernel(dice.time(200), dice.between(1, 4)));
    for (int left = dice.between(1, 4); left > 0; --left)
      one.backward.push_back(timed::kernel(dice.time(300), dice.between(1, 4)));
    for (int left = dice.between(layer == 0 ? 1 : 0, 3); left > 0; --left) {
      Parameter& parameter = workload.parameters.emplace_back();
      parameter.name = std::to_string(workload.parameters.size());
      parameter.shape = {dice.between(1, dice.one_in(3) ? 2'000'000 : 5'000)};
      parameter.dtype = dice.one_in(4) ? DType::bf16 : DType::fp32;
      parameter.layer = layer;
      parameter.ready_after = dice.between(0, static_cast<int>(one.backward.size()) - 1);
      parameter.sparse = dice.one_in(12);
    }
  }
  if (dice.one_in(2)) workload.optimizer = dice.time(500);
  if (dice.one_in(4)) workload.buffers = {{dice.between(1, 5), {dice.between(4, 40'000)}}};
  check(workload);
  return workload;
}

inline Cluster random_cluster(Dice& dice, bool interference) {
  Cluster cluster =
      timed::ring(dice.between(1, 8), dice.time(30), gigabytes_per_second(dice.between(1, 100)));
  cluster.device.synchronous = dice.one_in(5);
  cluster.launch = {dice.time(10), dice.time(20), dice.time(5)};
  if (interference) cluster.interference = FixedInterference{dice.slowdown(), dice.slowdown()};
  if (interference && dice.one_in(3)) {  // by the law, of kernels that start later
    cluster.interference.reset();
    cluster.intra_node.kind = LinkKind::pcie;
    cluster.device.peer_to_peer = false;
  }
  return cluster;
}

/// Of any strategy; explicit buckets are the one thing it does not draw.
inline Training random_training(Dice& dice, const Workload& workload) {
  Training training;
  training.strategy = all_strategies[static_cast<std::size_t>(dice.between(0, 4))];
  training.bucket_cap = {dice.between(1, 4'000'000)};
  training.first_bucket_cap = Bytes{dice.between(1, 1'000'000)};
  if (dice.one_in(3)) training.first_bucket_cap.reset();
  if (dice.one_in(6)) training.bucket_caps = {{1000}, {100'000}};
  if (dice.one_in(4)) {
    const auto most = std::min<int>(4, static_cast<int>(workload.parameters.size()));
    training.parameter_groups = dice.between(1, most);
  }
  if (dice.one_in(3)) training.bucket_rule = BucketRule::before_overflow;
  if (dice.one_in(4)) training.iteration = dice.between(1, 3);
  training.micro_batches = dice.one_in(2) ? 1 : dice.between(2, 3);
  training.no_sync = dice.one_in(2);
  training.find_unused_parameters = dice.one_in(3);
  training.static_graph = dice.one_in(3);
  training.gradient_as_bucket_view = dice.one_in(3);
  return training;
}

}  // namespace ddpsim::fixtures
