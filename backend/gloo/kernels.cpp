#include "backend/gloo/kernels.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/cpu/busy.hpp"
#include "backend/cpu/gemm.hpp"
#include "backend/device/cpu/optimizer_update.hpp"

namespace ddpsim {
namespace {

void scaled_copy(std::span<float> to, std::span<const float> from, float factor) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] * factor;
}

void copy(std::span<float> to, std::span<const float> from) {
  std::copy(from.begin(), from.end(), to.begin());
}

/// Reads and writes `traffic` bytes, half each.
void stream(std::int64_t traffic, const float* from, float* to, std::int64_t most) {
  for (std::int64_t left = traffic / 8; left > 0; left -= most) {
    const std::int64_t count = std::min(left, most);
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * 0.5F + 1.0F;
  }
}

/// Does a comm hook update parameters while backward still computes?
bool updates_in_backward(const Schedule& schedule) {
  return std::ranges::any_of(schedule.buckets, [](const Bucket& bucket) {
    return std::ranges::any_of(
        bucket.steps, [](const CommStep& step) { return step.action == CommAction::update; });
  });
}

}  // namespace

void Kernels::begin_step(const Schedule& schedule) {
  const bool updates = std::ranges::any_of(
      schedule.tasks, [](const Task& task) { return task.operation == Operation::optimizer; });
  if (updates) ++steps_;
  updates_in_backward_ = updates_in_backward(schedule);
}

void Kernels::run(const Schedule& schedule, const Task& task) {
  switch (task.operation) {
    case Operation::forward:
      return pass(task, workload_.layers[at(task.layer)].forward[at(task.kernel)],
                  memory_.forward_binding(task.layer, task.kernel));
    case Operation::backward:
      return pass(task, workload_.layers[at(task.layer)].backward[at(task.kernel)],
                  memory_.backward_binding(task.layer, task.kernel));
    case Operation::accumulate:
      return accumulate(task);
    case Operation::copy_in:
      return copy_in(task);
    case Operation::concatenate:
      return concatenate(schedule, task);
    case Operation::divide:
      return divide(schedule, task);
    case Operation::copy_out:
      if (task.parameter == nobody) return fill_buffers(schedule, task);
      return copy(memory_.gradient(task.parameter), memory_.slice(task.parameter));
    case Operation::optimizer:
      return optimize(task);
    case Operation::search_unused:  // the workload says which parameters are unused
    case Operation::outside:
    case Operation::synchronize:
      return;  // they only take the host time
    case Operation::hook:
    case Operation::gradient_hook:
    case Operation::module_hook:
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::wait:
    case Operation::meet:
    case Operation::pause:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
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
          "{} outside of a comm hook is no kernel of the gloo backend", name_of(task.operation)));
  }
}

void Kernels::accumulate(const Task& task) {
  const auto sum = memory_.gradient(task.parameter);
  const auto fresh = memory_.written(task.parameter, task.micro_batch);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += fresh[i];
}

/// The network's buffers are one tensor here: nobody looks at their values.
void Kernels::fill_buffers(const Schedule& schedule, const Task& task) {
  std::ranges::fill(memory_.buffers(task.kernel, schedule.work_of(task).payload), 1);
}

void Kernels::copy_in(const Task& task) {
  const auto slice = memory_.slice(task.parameter);
  if (workload_.parameters[at(task.parameter)].unused)
    std::ranges::fill(slice, 0.0F);
  else
    scaled_copy(slice, memory_.gradient(task.parameter), quotient(task));
}

void Kernels::concatenate(const Schedule& schedule, const Task& task) {
  if (schedule.work_of(task).message == Message::parameters) return memory_.begin_average();
  if (task.bucket == nobody) return fill_buffers(schedule, task);
  for (const std::int32_t p : schedule.buckets[at(task.bucket)].parameters)
    if (!workload_.parameters[at(p)].unused &&
        memory_.slice(p).data() != memory_.gradient(p).data())
      copy(memory_.slice(p), memory_.gradient(p));
}

void Kernels::divide(const Schedule& schedule, const Task& task) {
  if (task.bucket != nobody && schedule.buckets[at(task.bucket)].sparse)
    return memory_.sparse().scale(task.parameter, memory_.gradient(task.parameter), quotient(task));
  const auto values = schedule.work_of(task).message == Message::parameters ? memory_.average()
                      : task.parameter == nobody ? memory_.bucket(task.bucket)
                                                 : memory_.gradient(task.parameter);
  scaled_copy(values, values, quotient(task));
}

void Kernels::optimize(const Task& task) {
  if (workload_.optimizer) return be_busy(*workload_.optimizer);
  if (optimizer_ == Optimizer::adamw_loop)
    return update(task.kernel, memory_.gradient(task.kernel));
  for (std::size_t p = 0; p < workload_.parameters.size(); ++p)
    update(static_cast<std::int32_t>(p), memory_.gradient(static_cast<std::int32_t>(p)));
}

void Kernels::pass(const Task& task, const Kernel& kernel, const KernelBinding& binding) {
  // Different operands for every kernel, micro-batch and operand.
  const auto seed =
      static_cast<std::uint32_t>((task.layer * 64 + task.kernel) * 8 + 1 + 1000 * task.micro_batch +
                                 (task.operation == Operation::backward ? 4 : 0));
  const float* left = memory_.operand(seed);
  for (std::uint32_t i = 0; i < binding.gradient.fills.size(); ++i) {
    const std::int32_t p = binding.gradient.fills[i];
    const auto gradient = memory_.written(p, task.micro_batch);
    const std::span values{memory_.operand(seed + 2 + i), gradient.size()};
    if (memory_.sparse().has(p))
      memory_.sparse().fill(p, gradient, values);
    else
      scaled_copy(gradient, values, 0.5F);
  }
  if (kernel.gemm) {
    const Gemm& g = *kernel.gemm;
    const bool writes = binding.gradient.result != nobody;
    float* result = writes ? memory_.written(binding.gradient.result, task.micro_batch).data()
                           : memory_.scratch();
    // An optimizer in backward may be writing the parameters.
    const bool reads = binding.weight != nobody && !updates_in_backward_;
    const float* right =
        reads ? memory_.parameter(binding.weight).data() : memory_.operand(seed + 1);
    const GemmLayout layout = task.operation == Operation::forward ? GemmLayout::nt
                              : writes                             ? GemmLayout::tn
                                                                   : GemmLayout::nn;
    for (std::int64_t b = 0; b < g.batch; ++b)
      gemm(layout, g.m, g.n, g.k, left + b * g.m * g.k, right + (reads ? 0 : b * g.k * g.n),
           result + b * g.m * g.n);
    return;
  }
  if (kernel.time && kernel.traffic == Bytes{}) return be_busy(*kernel.time);
  stream(kernel.traffic.count, left, memory_.scratch(), memory_.scratch_size());
}

void Kernels::update(const Bucket& bucket) {
  if (workload_.optimizer) {
    const double share = static_cast<double>(bucket.size.count) /
                         static_cast<double>(workload_.gradient_size().count);
    return be_busy(scaled(*workload_.optimizer, share));
  }
  for (const std::int32_t parameter : bucket.parameters)
    update(parameter, memory_.slice(parameter));
}

void Kernels::update(std::int32_t index, std::span<const float> gradient) {
  update_parameter(optimizer_, steps_, memory_.parameter(index), gradient,
                   {memory_.momentum(index), memory_.variance(index)});
}

}  // namespace ddpsim
