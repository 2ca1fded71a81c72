#include "backend/measure/task_kind.hpp"

namespace ddpsim {
namespace {

std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

TaskKind moves(Operation operation, Bytes traffic) {
  return {operation, std::nullopt, traffic, DType::fp32};
}

std::optional<TaskKind> of_hook(const Workload& workload, const UserHook& hook, const Task& task) {
  if (hook.kind == UserHookKind::chunks)
    return moves(Operation::module_hook, 2 * hook.outputs[at(task.kernel)]);
  Bytes size;
  for (const std::int32_t index : hook.groups[at(task.kernel)])
    size += workload.parameters[at(index)].size();
  const Kernel kernel = kernel_of(hook, size);
  if (kernel.traffic == Bytes{}) return std::nullopt;
  return moves(priced_as(hook.kind), kernel.traffic);
}

}  // namespace

TaskKinds::TaskKinds(const Workload& workload, Optimizer optimizer)
    : workload_(workload), optimizer_(optimizer_kernels(optimizer, workload)) {}

std::optional<TaskKind> TaskKinds::of(const Schedule& schedule, const Task& task) const {
  if (task.step != nobody) {
    const CommStep& step = schedule.buckets[at(task.bucket)].steps[at(task.step)];
    if (is_collective(step.operation) || step.operation == Operation::synchronize ||
        step.operation == Operation::optimizer)
      return std::nullopt;
    std::optional<TaskKind> kind = of(step.operation, step.kernel);
    if (kind) kind->aside = task.stream == Stream::communication;
    return kind;
  }
  if (task.user_hook != nobody) return of_hook(workload_, schedule.hooks[at(task.user_hook)], task);
  switch (task.operation) {
    case Operation::forward:
      return of(task.operation, workload_.layers[at(task.layer)].forward[at(task.kernel)]);
    case Operation::backward:
      return of(task.operation, workload_.layers[at(task.layer)].backward[at(task.kernel)]);
    case Operation::optimizer:
      if (workload_.optimizer) return std::nullopt;
      return of(task.operation, optimizer_[at(task.kernel)]);
    case Operation::accumulate:
      return moves(task.operation, 3 * workload_.parameters[at(task.parameter)].size());
    case Operation::copy_in:
    case Operation::concatenate:
    case Operation::divide:
    case Operation::copy_out:
      if (task.parameter != nobody) return of_gradient(schedule, task);
      if (task.bucket == nobody) return std::nullopt;  // of buffers: small
      return moves(task.operation, 2 * schedule.buckets[at(task.bucket)].size);
    case Operation::hook:
    case Operation::all_reduce:
    case Operation::wait:
    case Operation::broadcast:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
    case Operation::search_unused:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::cast:
    case Operation::correct:
    case Operation::pack:
    case Operation::draw:
    case Operation::multiply:
    case Operation::orthogonalize:
    case Operation::quantize:
    case Operation::dequantize:
    case Operation::select:
    case Operation::own_kernel:
    case Operation::gradient_hook:
    case Operation::module_hook:
    case Operation::synchronize:
      return std::nullopt;
  }
  return std::nullopt;
}

/// As the schedule prices it: zeros are written, nothing is read; of a sparse gradient its rows.
std::optional<TaskKind> TaskKinds::of_gradient(const Schedule& schedule, const Task& task) const {
  const Parameter& parameter = workload_.parameters[at(task.parameter)];
  if (task.operation == Operation::copy_in && parameter.unused)
    return moves(task.operation, parameter.size());
  const bool rows = task.operation == Operation::divide && parameter.sparse &&
                    schedule.strategy == Strategy::bucketed &&
                    schedule.buckets[at(task.bucket)].parameters.size() == 1;
  if (rows) return moves(Operation::copy_in, 2 * parameter.sparse_values());
  return moves(task.operation, 2 * parameter.size());
}

std::optional<TaskKind> TaskKinds::of(Operation operation, const Kernel& kernel) {
  if (kernel.time) return std::nullopt;
  return TaskKind{operation, kernel.gemm, kernel.traffic, kernel.type};
}

}  // namespace ddpsim
