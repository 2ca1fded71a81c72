#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include "model/parallel/order/build_job.hpp"
#include "tests/model/workload/timed.hpp"

/// Workloads, clusters and trainings with every mode that DDP has, drawn from a seed with
/// distributions of our own. Some of the trainings cannot be, and are refused.
namespace ddpsim::drawn {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  /// Each of low ... high.
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(int n) { return between(1, n) == 1; }
  Duration time(int most_us) { return Duration{between(0, most_us * 1'000)} * 1'000; }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  template <typename List>
  auto any_of(const List& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<int>(std::size(list)) - 1))];
  }

 private:
  std::mt19937_64 random_;
};

/// With a known time, or with a shape; of few sizes, so that some are alike.
inline Kernel random_kernel(Draw& draw, bool timed) {
  Kernel kernel;
  kernel.launches = draw.between(1, 4);
  kernel.traffic = {draw.between(1, 3) * 400'000};
  if (timed) {
    kernel.time = draw.time(200);
    return kernel;
  }
  if (draw.one_in(2)) kernel.gemm = Gemm{64 * draw.between(1, 3), 128, 64, 1};
  if (draw.one_in(4)) kernel.type = DType::bf16;
  return kernel;
}

/// The workload with itself as what runs with parameters of that type.
inline Workload cast_to(Workload workload, DType type) {
  Workload cast = workload;
  for (Parameter& parameter : cast.parameters) parameter.dtype = type;
  workload.cast = std::make_shared<const Workload>(std::move(cast));
  return workload;
}

inline Parameter random_parameter(Draw& draw, int layer, int backward_kernels) {
  Parameter parameter;
  parameter.layer = layer;
  parameter.ready_after = draw.between(0, backward_kernels - 1);
  parameter.shape = {draw.between(1, draw.one_in(3) ? 200'000 : 500)};
  if (draw.one_in(2)) parameter.shape.push_back(draw.between(1, 20));
  return parameter;
}

inline Workload random_workload(Draw& draw) {
  Workload workload;
  workload.name = "random";
  const bool timed = draw.one_in(2), unused = draw.one_in(4), sparse = draw.one_in(5);
  const bool mixed = draw.one_in(3);
  for (int l = 0, layers = draw.between(1, 5); l < layers; ++l) {
    Layer& layer = workload.layers.emplace_back();
    for (int left = draw.between(0, 3); left > 0; --left)
      layer.forward.push_back(random_kernel(draw, timed));
    const int kernels = draw.between(1, 4);
    for (int k = 0; k < kernels; ++k) layer.backward.push_back(random_kernel(draw, timed));
    for (int left = draw.between(l == 0 ? 1 : 0, 3); left > 0; --left) {
      Parameter& parameter = workload.parameters.emplace_back(random_parameter(draw, l, kernels));
      parameter.name = std::to_string(workload.parameters.size());
      if (mixed && draw.one_in(2)) parameter.dtype = DType::bf16;
      parameter.unused = unused && workload.parameters.size() > 1 && draw.one_in(4);
      parameter.sparse = sparse && draw.one_in(3);
      if (parameter.sparse)
        parameter.sparse_rows = std::min<std::int64_t>(draw.between(0, 100), parameter.shape[0]);
    }
  }
  if (draw.one_in(2)) workload.optimizer = draw.time(500);
  if (draw.one_in(3)) workload.buffers = {{draw.between(1, 5), {draw.between(4, 40'000)}}};
  if (draw.one_in(6)) workload.buffers.push_back({7, {700 << 20}});
  check(workload);
  return workload;
}

/// The workload with some kernels of its layer that each parameter's module runs, if they are said.
inline Workload with_modules(Draw& draw, Workload workload) {
  const auto range = [&draw](const std::vector<Kernel>& pass) -> std::optional<KernelRange> {
    if (pass.empty() || draw.one_in(4)) return std::nullopt;
    const int last = draw.between(0, static_cast<int>(pass.size()) - 1);
    return KernelRange{draw.between(0, last), last};
  };
  for (Parameter& each : workload.parameters) {
    const Layer& layer = workload.layers[at(each.layer)];
    each.forward = range(layer.forward);
    each.backward = range(layer.backward);
    if (each.backward) each.backward->last = std::max(each.backward->last, each.ready_after);
  }
  check(workload);
  return workload;
}

inline Cluster random_cluster(Draw& draw) {
  Cluster cluster =
      timed::ring(draw.between(1, 8), draw.time(30), gigabytes_per_second(draw.between(1, 100)));
  if (draw.one_in(3)) {
    cluster.nodes = draw.between(2, 4);
    cluster.inter_node.latency = draw.time(30);
    cluster.inter_node.bandwidth = gigabytes_per_second(draw.between(1, 50));
  }
  cluster.device.synchronous = draw.one_in(3);
  cluster.launch = {draw.time(10), draw.time(20), draw.time(5), draw.time(9), draw.time(7)};
  if (draw.one_in(2)) cluster.interference = FixedInterference{draw.real(1, 2), draw.real(1, 2)};
  if (draw.one_in(4)) cluster.through_host = gigabytes_per_second(draw.between(1, 30));
  if (draw.one_in(4)) cluster.collectives_at_once = 2;
  return cluster;
}

inline OwnStep random_step(Draw& draw) {
  OwnStep step;
  step.kind = draw.any_of(all_own_steps);
  step.type = draw.one_in(2) ? DType::bf16 : DType::fp16;
  step.share = 0.1;
  if (draw.one_in(2)) step.factor = 0.5;
  step.launches = draw.between(1, 3);
  step.communicator = draw.between(0, 1);
  return step;
}

inline CommHook random_comm_hook(Draw& draw) {
  CommHook hook;
  hook.kind = draw.any_of(all_comm_hooks);
  if (draw.one_in(5)) hook.wrappers = {draw.one_in(2) ? DType::bf16 : DType::fp16};
  hook.powersgd.rank = draw.between(1, 4);
  hook.powersgd.start_iteration = draw.between(2, 4);
  hook.powersgd.warm_start = draw.one_in(2);
  hook.powersgd.error_feedback = draw.one_in(2);
  hook.post_local_sgd.start_iteration = draw.between(0, 3);
  hook.post_local_sgd.period = draw.between(1, 3);
  hook.post_local_sgd.subgroup = draw.one_in(2) ? 0 : draw.between(1, 3);
  hook.post_local_sgd.gradient_allreduce = !draw.one_in(4);
  hook.plugin = "plugin";
  for (int left = draw.between(1, 4); left > 0; --left) hook.steps.push_back(random_step(draw));
  return hook;
}

inline UserHook random_user_hook(Draw& draw, const Workload& workload) {
  UserHook hook;
  hook.kind = draw.any_of(all_user_hooks);
  hook.value = 1;
  hook.host = draw.time(20);
  hook.launches = draw.between(1, 3);
  if (hook.kind == UserHookKind::chunks) {
    hook.chunks.count = draw.between(1, 4);
    for (std::int32_t layer = 0; layer < static_cast<std::int32_t>(workload.layers.size()); ++layer)
      if (draw.one_in(2)) {
        hook.layers.push_back(layer);
        hook.outputs.push_back({draw.between(1, 100'000)});
      }
    return hook;
  }
  std::vector<std::int32_t> group;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(workload.parameters.size()); ++i) {
    if (draw.one_in(2)) group.push_back(i);
    if (group.empty() || !draw.one_in(2)) continue;
    hook.groups.push_back(group);
    group.clear();
  }
  return hook;
}

inline std::vector<std::vector<int>> random_buckets(Draw& draw, int parameters) {
  std::vector<std::vector<int>> buckets(static_cast<std::size_t>(draw.between(1, parameters)));
  for (int i = 0; i < parameters; ++i) {
    const auto last = static_cast<int>(buckets.size()) - 1;
    buckets[static_cast<std::size_t>(i <= last ? i : draw.between(0, last))].push_back(i);
  }
  return buckets;
}

inline std::optional<DelayedAllReduce> random_delay(Draw& draw, int parameters) {
  DelayedAllReduce delayed;
  delayed.hook = draw.between(0, parameters - 1);
  for (std::int32_t i = 0; i < parameters; ++i)
    if (i != delayed.hook && draw.one_in(3)) delayed.parameters.push_back(i);
  if (delayed.parameters.empty()) return std::nullopt;
  return delayed;
}

inline Training random_training(Draw& draw, const Workload& workload) {
  Training training;
  const auto parameters = static_cast<int>(workload.parameters.size());
  training.strategy = draw.one_in(2) ? Strategy::bucketed : draw.any_of(replicating_strategies);
  training.bucket_cap = {draw.one_in(4) ? 1 : draw.between(1, 1'000'000)};
  training.first_bucket_cap = Bytes{draw.between(1, 400'000)};
  if (draw.one_in(3)) training.first_bucket_cap.reset();
  if (draw.one_in(6)) training.bucket_caps = {{1000}, {100'000}};
  if (draw.one_in(8)) training.parameter_groups = draw.between(1, std::min(4, parameters));
  if (draw.one_in(8)) training.buckets = random_buckets(draw, parameters);
  if (draw.one_in(3)) training.bucket_rule = BucketRule::before_overflow;
  if (draw.one_in(2)) training.iteration = draw.between(1, 6);
  training.micro_batches = draw.one_in(2) ? 1 : draw.between(2, 3);
  training.no_sync = draw.one_in(2);
  training.find_unused_parameters = draw.one_in(3);
  training.static_graph = draw.one_in(3);
  const bool unused = std::any_of(workload.parameters.begin(), workload.parameters.end(),
                                  [](const Parameter& each) { return each.unused; });
  if (unused && !draw.one_in(10)) training.find_unused_parameters = true;
  training.skip_all_reduce_unused_params = draw.one_in(5);
  training.gradient_as_bucket_view = draw.one_in(3);
  training.batched_grad_copy = draw.one_in(4);
  training.broadcast_buffers = !draw.one_in(5);
  training.last_bucket_cap = draw.one_in(6);
  if (draw.one_in(3)) training.pytorch = draw.one_in(2) ? PyTorch::v1_13 : PyTorch::v2_0;
  if (draw.one_in(5)) training.join = Join{draw.one_in(2), draw.one_in(2), draw.between(0, 1)};
  if (draw.one_in(2)) training.comm_hook = random_comm_hook(draw);
  if (draw.one_in(6)) training.delayed = random_delay(draw, parameters);
  if (training.delayed && !draw.one_in(4)) {  // what does not go with it
    training.micro_batches = 1;
    training.join.reset();
    training.buckets.clear();
    training.parameter_groups = 0;
  }
  training.wait_for_all = draw.one_in(4);
  if (draw.one_in(10)) {  // a wrapper of one's own has little else
    (draw.one_in(2) ? training.flattened_buckets : training.copied_buckets) = true;
    training.comm_hook = {};
    training.join.reset();
    training.delayed.reset();
    training.gradient_as_bucket_view = training.batched_grad_copy = false;
    training.find_unused_parameters = training.static_graph = false;
  }
  if (draw.one_in(3))
    for (int left = draw.between(1, 3); left > 0; --left)
      training.hooks.push_back(random_user_hook(draw, workload));
  return training;
}

/// A step, and its schedule.
struct RandomStep {
  Workload workload;
  Cluster cluster;
  Training training;
  StepWorks works;
  program::Job job;
};

/// A step that can be, of a training that `change` has changed; refused ones are drawn again.
inline RandomStep random_step_of(Draw& draw,
                                 const std::function<void(Draw&, Training&)>& change = {}) {
  while (true) {
    const Workload workload = random_workload(draw);
    const Cluster cluster = random_cluster(draw);
    Training training = random_training(draw, workload);
    if (change) change(draw, training);
    const StepWorks works(workload, cluster, draw.any_of(all_optimizers));
    try {
      return {workload, cluster, training, works, build_job(works, training)};
    } catch (const std::invalid_argument&) {
    }
  }
}

}  // namespace ddpsim::drawn
