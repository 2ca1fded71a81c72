#include "model/cost/kernel_cost.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/convolution.hpp"

namespace ddpsim {
namespace {

/// From the start of a kernel of some KB to the start of the next one behind it: 2.2 us, the median
/// of the 161 gradients that DDP copies into its buckets, most of which are that small, and 1.0 us
/// between kernels that the host has enqueued ahead. Source: a trace of ResNet-50 on an A100,
/// github:facebookresearch/HolisticTraceAnalysis@f4d0062:
/// tests/data/nccl_parser_config/nccl_data.json.gz.
constexpr Duration kernel_ramp = std::chrono::nanoseconds{3200};

/// Sides of the output tile one thread block computes (cuBLAS picks 64 to 256; 128 is its usual
/// choice).
constexpr double tile = 128;
/// An assumption as well: the shortest piece of k worth a block of its own when an output has fewer
/// tiles than the device has SMs.
constexpr double shortest_split = 512;

Duration ramps(int launches, const Device& device) {
  return device.synchronous ? Duration::zero() : launches * kernel_ramp;
}

double fill(const Gemm& gemm, int multiprocessors) {
  const double rows = std::ceil(static_cast<double>(gemm.m) / tile);
  const double columns = std::ceil(static_cast<double>(gemm.n) / tile);
  double blocks = rows * columns * static_cast<double>(gemm.batch);
  const double sms = multiprocessors;
  if (blocks < sms)
    blocks *= std::max(1.0, std::min(std::floor(sms / blocks),
                                     std::floor(static_cast<double>(gemm.k) / shortest_split)));
  const double waves = blocks / sms;
  // Only the last, partial wave is lost; small tiles lower the loss, so count half of it.
  const double wave_loss =
      waves < 1 ? waves : 1 - 0.5 * (std::ceil(waves) - waves) / std::ceil(waves);
  const double used = static_cast<double>(gemm.m) * static_cast<double>(gemm.n);
  const double edge = used / std::max(used, rows * columns * tile * tile * 0.5);
  return std::max(0.02, wave_loss * edge);
}

/// What implicit products in TF32 reach of the rate of plain ones: those of convolutions, whose
/// windows overlap, so that operands are gathered and not read in rows. Fitted to the sums of
/// ResNet-50's convolutions on an A100, forward and backward (github:facebookresearch/
/// HolisticTraceAnalysis@f4d0062: tests/data/nccl_parser_config); published steps of it in fp32 on
/// V100 show no such loss.
constexpr double implicit_tf32 = 0.45;

double gathering(const Kernel& kernel) {
  const bool implicit = kernel.type == DType::tf32 && kernel.traffic.count > 0 &&
                        kernel.traffic < plain_traffic(*kernel.gemm, size_of(DType::fp32));
  return implicit ? implicit_tf32 : 1;
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
  cost.host -= scaled(kernel.followers * launch, launches_per_operation(caller) - 1);
  if (kernel.time) {
    cost.work = *kernel.time;
    cost.last_launch = cost.work / kernel.launches;
    cost.memory_fraction = 0.5F;  // nothing is known of a measured kernel: half and half
    return cost;
  }
  if (!kernel.gemm) return cost;
  const double peak = device.peak_of(kernel.type).flops_per_second;
  if (peak <= 0)
    throw std::invalid_argument(
        fmt::format("device {} does not multiply {}", device.name, name_of(kernel.type)));
  const Gemm& gemm = *kernel.gemm;
  const Duration arithmetic =
      from_seconds(gemm.flops() / (peak * device.efficiency_of(kernel.type) *
                                   fill(gemm, device.multiprocessors) * gathering(kernel)));
  const Duration ramp = ramps(kernel.launches, device);
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
