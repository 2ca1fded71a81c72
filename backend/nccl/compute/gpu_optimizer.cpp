#include "backend/nccl/compute/gpu_optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace ddpsim {

GpuOptimizer::GpuOptimizer(Gpu& gpu, const GpuMemory& memory, GpuTraffic& traffic,
                           Optimizer optimizer)
    : gpu_(gpu),
      memory_(memory),
      traffic_(traffic),
      optimizer_(optimizer),
      kernels_(optimizer_kernels(optimizer, memory.workload())) {}

void GpuOptimizer::run(const Task& task) {
  if (workload().optimizer) return gpu_.spin(task.stream, *workload().optimizer);
  const Kernel& kernel = kernels_[static_cast<std::size_t>(task.kernel)];
  if (task.kernel == 0) ++steps_;
  int used = 1;
  Bytes moved;
  if (optimizer_ == Optimizer::adamw_loop) {
    update(task.kernel, task.stream);
    moved = passes() * memory_.parameter(task.kernel).size();
  } else if (memory_.together()) {
    update_all();
    moved = passes() * workload().gradient_size();
  } else {
    used = static_cast<int>(workload().parameters.size());
    for (std::int32_t p = 0; p < used; ++p) update(p, task.stream);
    moved = passes() * workload().gradient_size();
  }
  const Bytes left = std::max(Bytes{}, kernel.traffic - moved);
  if (left > Bytes{})
    traffic_.move(task.stream, left, std::max(1, kernel.launches - used), operand_seed(task, 0));
}

/// An equal share of what the optimizer's kernels move goes with every byte of gradient.
void GpuOptimizer::update_bucket(const Schedule& schedule, const Task& task) {
  const Bucket& whole = schedule.buckets[static_cast<std::size_t>(task.bucket)];
  const double share =
      static_cast<double>(whole.size.count) / static_cast<double>(workload().gradient_size().count);
  if (workload().optimizer) return gpu_.spin(task.stream, scaled(*workload().optimizer, share));
  if (optimizer_ == Optimizer::none) return;
  if (task.bucket == 0) ++steps_;
  for (const std::int32_t p : whole.parameters) update(p, task.stream);
  Bytes all;
  int launches = 0;
  for (const Kernel& kernel : kernels_) {
    all += kernel.traffic;
    launches += kernel.launches;
  }
  const Bytes left{std::llround(share * static_cast<double>(all.count)) -
                   passes() * whole.size.count};
  if (left <= Bytes{}) return;
  const auto own = static_cast<std::int64_t>(whole.parameters.size());
  traffic_.move(task.stream, left,
                static_cast<int>(std::max<std::int64_t>(1, std::llround(share * launches) - own)),
                operand_seed(task, 0));
}

void GpuOptimizer::update(std::int32_t index, Stream stream) {
  const Parameter& each = memory_.parameter(index);
  UpdateCall call;
  call.optimizer = optimizer_;
  call.parameter = memory_.parameter_at(index);
  call.gradient = memory_.gradient_at(index);
  call.momentum = memory_.momentum_at(index);
  call.variance = memory_.variance_at(index);
  call.count = each.elements();
  call.type = each.dtype;
  call.step = steps_;
  call.stream = stream;
  gpu_.update(call);
}

/// All parameters in one go: they, their gradients and states lie side by side, gaps included.
void GpuOptimizer::update_all() {
  UpdateCall call;
  call.optimizer = optimizer_;
  call.type = memory_.parameter(0).dtype;
  call.parameter = memory_.parameter_at(0);
  call.gradient = memory_.gradient_at(0);
  call.momentum = memory_.momentum_at(0);
  call.variance = memory_.variance_at(0);
  call.count = memory_.store_size().count / size_of(call.type).count;
  call.step = steps_;
  gpu_.update(call);
}

}  // namespace ddpsim
