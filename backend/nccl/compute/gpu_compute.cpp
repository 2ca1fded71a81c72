#include "backend/nccl/compute/gpu_compute.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {

void GpuCompute::run(const Schedule& schedule, const Task& task) {
  const Workload& workload = memory_.workload();
  const std::int32_t p = task.parameter;
  switch (task.operation) {
    case Operation::forward:
      return pass(task, workload.layers[at(task.layer)].forward[at(task.kernel)], {});
    case Operation::backward:
      return pass(task, workload.layers[at(task.layer)].backward[at(task.kernel)],
                  memory_.binding(task));
    case Operation::accumulate:
      return gpu_.add(task.stream, memory_.gradient_at(p), memory_.written(p, task.micro_batch),
                      memory_.parameter(p).elements(), memory_.parameter(p).dtype);
    case Operation::copy_in:
      return copy_in(schedule, task);
    case Operation::concatenate:
      return concatenate(schedule, task);
    case Operation::divide:
      return divide(schedule, task);
    case Operation::copy_out:
      if (p == nobody) return copy_buffers(schedule, task);
      return scale(task, p, memory_.gradient_at(p), memory_.slice_at(p), 1);
    case Operation::optimizer:
      return optimizer_.run(task);
    case Operation::gradient_hook: {  // `scale`: the backend refuses the others
      std::byte* gradient = memory_.written(p, task.micro_batch);
      return scale(task, p, gradient, gradient,
                   static_cast<float>(schedule.hooks[at(task.user_hook)].value));
    }
    case Operation::wait:  // events between streams are all there is to it
    case Operation::hook:
    case Operation::search_unused:
    case Operation::outside:
    case Operation::synchronize:
      return;  // they only take the host time
    case Operation::module_hook:
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
    case Operation::meet:
    case Operation::pause:
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
      throw std::invalid_argument(fmt::format(
          "{} outside of a comm hook is no kernel of the nccl backend", name_of(task.operation)));
  }
}

/// What a copy or a division multiplies with. A loopback on one GPU stands for all the ranks of the
/// schedule, and sums nothing: there a mean over the schedule's ranks is one over those that are
/// real.
float GpuCompute::quotient(const Schedule& schedule, const Task& task) const {
  if (task.divisor == schedule.ranks) return mean_;
  return 1.0F / static_cast<float>(task.divisor);
}

/// to = factor * from, as many numbers as the parameter has.
void GpuCompute::scale(const Task& task, std::int32_t parameter, std::byte* to,
                       const std::byte* from, float factor) {
  gpu_.scale(task.stream, to, from, memory_.parameter(parameter).elements(),
             memory_.parameter(parameter).dtype, factor);
}

void GpuCompute::copy_in(const Schedule& schedule, const Task& task) {
  const Parameter& parameter = memory_.parameter(task.parameter);
  std::byte* slice = memory_.slice_at(task.parameter);
  if (parameter.unused) return gpu_.clear(task.stream, slice, parameter.size());
  scale(task, task.parameter, slice, memory_.gradient_at(task.parameter), quotient(schedule, task));
}

void GpuCompute::concatenate(const Schedule& schedule, const Task& task) {
  if (task.bucket == nobody) return copy_buffers(schedule, task);
  for (const std::int32_t p : schedule.buckets[at(task.bucket)].parameters)
    if (!memory_.parameter(p).unused)
      scale(task, p, memory_.slice_at(p), memory_.gradient_at(p), 1);
}

void GpuCompute::divide(const Schedule& schedule, const Task& task) {
  if (task.parameter != nobody) {
    std::byte* gradient = memory_.gradient_at(task.parameter);
    return scale(task, task.parameter, gradient, gradient, quotient(schedule, task));
  }
  const Bucket& whole = schedule.buckets[at(task.bucket)];
  const DType type = memory_.type_of(whole);
  void* values = memory_.bucket(task.bucket);
  gpu_.scale(task.stream, values, values, whole.size.count / size_of(type).count, type,
             quotient(schedule, task));
}

/// A group of the network's buffers into or out of one tensor.
void GpuCompute::copy_buffers(const Schedule& schedule, const Task& task) {
  const Work& work = schedule.work_of(task);
  traffic_.move(task.stream, work.traffic, work.launches, operand_seed(task, 0));
}

void GpuCompute::pass(const Task& task, const Kernel& kernel, const GradientBinding& binding) {
  for (const std::int32_t p : binding.fills) {
    const Parameter& each = memory_.parameter(p);
    scale(task, p, memory_.written(p, task.micro_batch),
          memory_.operand(each.dtype, each.size(),
                          operand_seed(task, 2) + static_cast<std::uint32_t>(p)),
          0.5F);
  }
  if (kernel.gemm) return multiply(task, kernel, binding.result);
  if (kernel.time && kernel.traffic == Bytes{}) return gpu_.spin(task.stream, *kernel.time);
  // What filled gradients above is part of this kernel's traffic.
  Bytes left = kernel.traffic;
  for (const std::int32_t p : binding.fills)
    left = std::max(Bytes{}, left - 2 * memory_.parameter(p).size());
  traffic_.move(task.stream, left,
                std::max(1, kernel.launches - static_cast<int>(binding.fills.size())),
                operand_seed(task, 3),
                reduces_rows(kernel) ? GpuTraffic::Motion::rows : GpuTraffic::Motion::elementwise);
}

/// The kernel's GEMM; its result is the gradient of this parameter, if that is one.
void GpuCompute::multiply(const Task& task, const Kernel& kernel, std::int32_t parameter) {
  const Gemm& g = *kernel.gemm;
  const Bytes element = size_of(kernel.type);
  GemmCall call;
  call.gemm = g;
  call.type = call.result_type = kernel.type;
  call.left = memory_.operand(kernel.type, g.batch * g.m * g.k * element, operand_seed(task, 0));
  call.right = memory_.operand(kernel.type, g.batch * g.k * g.n * element, operand_seed(task, 1));
  call.result = memory_.scratch();
  call.layout = task.operation == Operation::forward ? GpuGemmLayout::nt : GpuGemmLayout::nn;
  if (parameter != nobody) {
    call.layout = GpuGemmLayout::tn;
    call.result_type = memory_.parameter(parameter).dtype;
    call.result = memory_.written(parameter, task.micro_batch);
  }
  if (call.result_type != DType::fp32 && call.result_type != kernel.type)
    throw std::invalid_argument(
        fmt::format("{} multiplies in {}, and its gradient is {}: no library does that",
                    kernel.name, name_of(kernel.type), name_of(call.result_type)));
  gpu_.gemm(call);
}

}  // namespace ddpsim
