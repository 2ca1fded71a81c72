#include "model/cost/kernel_cost.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "model/kernel/host_law.hpp"

namespace ddpsim {
namespace {

/// From the start of a kernel of some KB to the start of the next one behind it: 2.2 us, the median
/// of the 161 gradients that DDP copies into its buckets, most of which are that small, and 1.0 us
/// between kernels that the host has enqueued ahead. Source: a trace of ResNet-50 on an A100,
/// github:facebookresearch/HolisticTraceAnalysis@f4d0062:
/// tests/data/nccl_parser_config/nccl_data.json.gz.
constexpr Duration kernel_ramp = std::chrono::nanoseconds{3200};

/// What a launch costs the reference host of laws by class, whatever else an operation does there.
constexpr std::chrono::duration<double, std::pico> usual_launch = std::chrono::microseconds{6};

Duration ramps(int launches, const Device& device) {
  return device.synchronous ? Duration::zero() : launches * kernel_ramp;
}

/// What a multi-tensor kernel reaches of the rate of one that streams through one tensor.
double streaming_share(int tensors, const StepConstants& constants) {
  constexpr int many = 100;
  return tensors >= many ? constants.optimizer_rate : constants.optimizer_few_rate;
}

/// An optimizer's call in a step, where a launch takes the host 6 us.
Duration call_in_step(const Kernel& kernel, const StepConstants& constants) {
  if (kernel.call == Duration::zero()) return {};
  return host_in_step(kernel.call, constants.host_of_a_step) +
         from_seconds(1e-6 * constants.optimizer_tensor_us * kernel.tensors);
}

const StepConstants& constants_of(const Device& device) {
  static constexpr StepConstants usual;
  return device.step_constants ? *device.step_constants : usual;
}

}  // namespace

double launches_per_operation(Caller caller) {
  switch (caller) {
    case Caller::forward_module:
      return 4.7;
    case Caller::autograd:
      return 4.0;
    case Caller::python_loop:
      return 2;
    case Caller::library:
      return 1;
  }
  return 1;
}

KernelCost kernel_cost(const Kernel& kernel, const Device& device, Duration launch, Caller caller) {
  KernelCost cost = streaming_cost(kernel.traffic, kernel.launches, device, launch, caller);
  const Duration ramp = ramps(kernel.launches, device);
  if (kernel.tensors > 0 && !device.synchronous)
    cost.work =
        scaled(cost.work - ramp, 1 / streaming_share(kernel.tensors, constants_of(device))) + ramp;
  cost.last_launch = cost.work / kernel.launches;
  if (!device.synchronous)
    cost.host += scaled(call_in_step(kernel, constants_of(device)), launch / usual_launch);
  if (kernel.time) {
    cost.work = *kernel.time;
    cost.last_launch = cost.work / kernel.launches;
    cost.memory_fraction = 0.5F;  // nothing is known of a measured kernel: half and half
    return cost;
  }
  if (kernel.by_class) {
    cost.host = scaled(kernel.by_class->host, launch / usual_launch);
    cost.work = kernel.by_class->work;
    cost.last_launch = cost.work / kernel.launches;
    cost.memory_fraction = kernel.by_class->memory_fraction;
    return cost;
  }
  if (!kernel.gemm) return cost;
  const double peak = device.peak_of(kernel.type).flops_per_second;
  if (peak <= 0)
    throw std::invalid_argument(
        fmt::format("device {} does not multiply {}", device.name, name_of(kernel.type)));
  const Gemm& gemm = *kernel.gemm;
  const Duration arithmetic =
      from_seconds(gemm.flops() / (peak * device.efficiency_of(kernel.type)));
  const Duration memory = cost.work - ramp;
  cost.work = std::max(arithmetic, memory) + ramp;
  cost.last_launch = cost.work / kernel.launches;
  cost.memory_fraction =
      static_cast<float>(static_cast<double>(memory.count()) /
                         static_cast<double>(std::max(arithmetic, memory).count() + 1));
  return cost;
}

KernelCost streaming_cost(Bytes bytes, int launches, const Device& device, Duration launch,
                          Caller caller) {
  const Bandwidth bandwidth{device.memory_bandwidth.bytes_per_second * device.memory_efficiency};
  KernelCost cost;
  cost.launches = launches;
  cost.host = scaled(launches * launch, launches_per_operation(caller));
  cost.work = bytes / bandwidth + ramps(launches, device);
  cost.last_launch = cost.work / launches;
  cost.memory_fraction = 1;
  return cost;
}

}  // namespace ddpsim
