#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/sim/predict/random_steps.hpp"

/// Workloads, clusters and trainings with everything that can be asked for, drawn from a seed.
namespace ddpsim::fixtures {

/// Known times, GEMMs or bytes moved.
inline Kernel any_kernel(Dice& dice, Duration time, int launches) {
  Kernel kernel = timed::kernel(time, launches);
  if (!dice.one_in(3)) return kernel;
  kernel.time.reset();
  kernel.traffic = {dice.between(1, 100'000'000)};
  if (!dice.one_in(2)) return kernel;
  Gemm gemm;
  gemm.m = dice.between(1, 2000);
  gemm.n = dice.between(1, 2000);
  gemm.k = dice.between(1, 2000);
  kernel.gemm = gemm;
  kernel.type = all_dtypes[static_cast<std::size_t>(dice.between(0, 3))];
  return kernel;
}

/// Sparse and unused parameters, matrices, several types, buffers, kernels of every kind.
inline Workload any_workload(Dice& dice) {
  Workload workload = random_workload(dice);
  for (Layer& layer : workload.layers)
    for (auto* pass : {&layer.forward, &layer.backward})
      for (Kernel& kernel : *pass) kernel = any_kernel(dice, *kernel.time, kernel.launches);
  const bool sparse = dice.one_in(6), unused = dice.one_in(6), one_type = dice.one_in(2);
  for (Parameter& each : workload.parameters) {
    if (each.shape.front() > 64 && dice.one_in(2)) each.shape = {each.shape.front() / 8, 8};
    each.sparse = sparse && dice.one_in(3);
    if (each.sparse && dice.one_in(2))
      each.sparse_rows = dice.between(1, static_cast<int>(each.shape.front()));
    each.unused = unused && dice.one_in(3);
    if (one_type) each.dtype = DType::fp32;
  }
  workload.parameters.front().unused = false;
  if (dice.one_in(8)) workload.buffers = {{3, Bytes{300'000'000}}, {1, Bytes{4'000}}};
  check(workload);
  return workload;
}

inline Cluster any_cluster(Dice& dice) {
  Cluster cluster = random_cluster(dice, dice.one_in(2));
  if (dice.one_in(4)) {
    cluster.nodes = 2;
    cluster.inter_node = cluster.intra_node;
    cluster.inter_node.latency = dice.time(50);
  }
  if (dice.one_in(3)) cluster.launch.handover = dice.time(40);
  if (dice.one_in(3)) cluster.launch.wait = dice.time(20);
  if (dice.one_in(12)) cluster.collectives_at_once = 2;
  if (dice.one_in(12)) cluster.through_host = gigabytes_per_second(dice.between(1, 50));
  return cluster;
}

/// Gradient hooks of every kind, on single gradients, on those of a layer, and on any together.
inline UserHook any_gradient_hook(Dice& dice, const Workload& workload) {
  constexpr std::array kinds{UserHookKind::clip,  UserHookKind::scale,  UserHookKind::noise,
                             UserHookKind::decay, UserHookKind::record, UserHookKind::plugin};
  UserHook hook;
  hook.kind = kinds[static_cast<std::size_t>(dice.between(0, 5))];
  hook.value = 1;
  hook.launches = dice.between(1, 3);
  if (dice.one_in(2)) hook.host = dice.time(50);
  const int together = hook.kind == UserHookKind::clip ? dice.between(1, 2) : 0;
  std::vector<std::int32_t> all;
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(workload.parameters.size()); ++p) {
    if (dice.one_in(2)) continue;
    const bool with_last =
        !hook.groups.empty() && workload.parameters[at(hook.groups.back().front())].layer ==
                                    workload.parameters[at(p)].layer;
    if (together == 2)
      all.push_back(p);
    else if (together == 1 && with_last)
      hook.groups.back().push_back(p);
    else
      hook.groups.push_back({p});
  }
  if (!all.empty()) hook.groups.push_back(all);
  return hook;
}

inline UserHook any_chunks(Dice& dice, const Workload& workload) {
  UserHook hook;
  hook.kind = UserHookKind::chunks;
  hook.chunks.count = dice.between(1, 4);
  hook.chunks.threads = dice.between(1, 4);
  hook.layers = {dice.between(0, static_cast<int>(workload.layers.size()) - 1)};
  hook.outputs = {Bytes{dice.between(1, 1'000'000)}};
  return hook;
}

inline OwnStep own_step(OwnStep::Kind kind, int communicator = 0) {
  OwnStep step;
  step.kind = kind;
  step.communicator = communicator;
  step.type = DType::fp16;
  step.share = 0.1;
  return step;
}

inline CommHook any_comm_hook(Dice& dice) {
  using Kind = OwnStep::Kind;
  CommHook hook;
  hook.kind = all_comm_hooks[static_cast<std::size_t>(
      dice.between(0, static_cast<int>(all_comm_hooks.size()) - 1))];
  if (hook.kind == CommHookKind::none || dice.one_in(6))
    hook.wrappers = {dice.one_in(2) ? DType::fp16 : DType::bf16};
  hook.powersgd.rank = dice.between(1, 3);
  hook.powersgd.start_iteration = dice.between(0, 3);
  hook.powersgd.error_feedback = dice.one_in(2);
  hook.powersgd.warm_start = dice.one_in(2);
  hook.post_local_sgd.start_iteration = dice.between(0, 3);
  hook.post_local_sgd.subgroup = dice.between(0, 2);
  hook.post_local_sgd.gradient_allreduce = dice.one_in(2);
  hook.post_local_sgd.period = dice.between(1, 3);
  hook.plugin = "any";
  const std::vector<std::vector<OwnStep>> lists{
      {own_step(Kind::cast), own_step(Kind::all_reduce)},
      {own_step(Kind::scale), own_step(Kind::reduce_scatter), own_step(Kind::all_gather, 1)},
      {own_step(Kind::kernel), own_step(Kind::all_reduce, 1)},
      {own_step(Kind::topk), own_step(Kind::all_gather)},
      {own_step(Kind::broadcast)},
      {own_step(Kind::kernel)}};
  if (hook.kind == CommHookKind::steps)
    hook.steps = lists[static_cast<std::size_t>(dice.between(0, 5))];
  return hook;
}

/// Everything but how buckets are made, each feature seldom; not every combination can be built.
inline Training any_training(Dice& dice, const Workload& workload) {
  Training training;
  const int seldom = dice.one_in(3) ? 3 : 10;
  const auto sometimes = [&] { return dice.one_in(seldom); };
  const auto has = [&](bool Parameter::*flag) {
    return std::any_of(workload.parameters.begin(), workload.parameters.end(),
                       [&](const Parameter& each) { return each.*flag; });
  };
  if (dice.one_in(2)) training.pytorch = all_pytorches[dice.one_in(2) ? 0 : 2];
  training.micro_batches = dice.one_in(3) ? dice.between(2, 3) : 1;
  training.no_sync = dice.one_in(2);
  training.gradient_as_bucket_view = dice.one_in(3);
  training.broadcast_buffers = !sometimes();
  training.find_unused_parameters = sometimes();
  training.static_graph = sometimes();
  if (has(&Parameter::unused) && !training.static_graph) training.find_unused_parameters = true;
  training.skip_all_reduce_unused_params = sometimes();
  training.batched_grad_copy = sometimes();
  training.iteration = sometimes() ? dice.between(1, 4) : 0;
  if (sometimes()) {
    Join join;
    join.throw_on_early_termination = dice.one_in(2);
    join.divide_by_initial_world_size = dice.one_in(2);
    training.join = join;
  }
  if (sometimes() && !has(&Parameter::sparse)) training.comm_hook = any_comm_hook(dice);
  if (sometimes())
    for (int left = dice.between(1, 3); left > 0; --left)
      training.hooks.push_back(any_gradient_hook(dice, workload));
  if (sometimes()) training.hooks.push_back(any_chunks(dice, workload));
  return training;
}

}  // namespace ddpsim::fixtures
