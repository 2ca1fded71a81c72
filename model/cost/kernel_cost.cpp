#include "model/cost/kernel_cost.hpp"

#include <algorithm>
#include <cmath>
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

/// What a library's launch right behind another costs the host, in bare launches: an upper bound.
/// Six layers of an LSTM over 512 steps, of two kernels each, take 19.2 ms on an L40S, 3.1 us for
/// each of 6144 launches, whatever else bounds them (tests/experiments/forward_passes.py).
constexpr double follower_launch = 0.5;

/// What a thread block computes of an output.
struct Tile {
  double rows = 128, columns = 128;
};

/// cuBLAS picks sides of 64 to 256; 128 is its usual choice.
constexpr Tile usual_tile{128, 128};
/// Of convolutions with few channels, and of those of one pixel, which are multiplied picture by
/// picture (traces: cutlass_80_tensorop_s1688gemm_256x64_16x4, tilesize256x64x32, 64x64_16x6).
constexpr Tile narrow_tile{128, 64};
constexpr std::int64_t few_channels = 64;

/// An assumption as well: the shortest piece of k worth a block of its own when an output has fewer
/// tiles than the device has SMs.
constexpr double shortest_split = 512;
/// In fp32, without tensor cores, GPUs have tiles for outputs of few rows or columns, shorter ones
/// where these would leave SMs idle (ampere_sgemm_128x32_sliced1x4, 32x32_sliced1x4).
constexpr Tile low_tile{32, 128}, lowest_tile{32, 32};

/// What a launch costs the reference host of laws by class, whatever else an operation does there.
constexpr std::chrono::duration<double, std::pico> usual_launch = std::chrono::microseconds{6};

Duration ramps(int launches, const Device& device) {
  return device.synchronous ? Duration::zero() : launches * kernel_ramp;
}

/// How well tiles fill whole waves of SMs. Of a tile `edge` counts as used whether it is or not:
/// smaller tiles are taken for edges.
double fill(const Gemm& gemm, const Tile& tile, double edge, int multiprocessors) {
  const double rows = std::ceil(static_cast<double>(gemm.m) / tile.rows);
  const double columns = std::ceil(static_cast<double>(gemm.n) / tile.columns);
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
  const double tiles = rows * columns * tile.rows * tile.columns;
  return std::max(0.02, wave_loss * used / std::max(used, tiles * edge));
}

/// What convolutions in TF32 reach of the rate of plain products: windows overlap, so that operands
/// are gathered and not read in rows. Fitted to forward passes of six networks on two A100
/// (tests/experiments/forward_passes.py).
constexpr double gathered_tf32 = 0.85;
/// Half a tile needs 1.5 times the operands for a product.
constexpr double narrow_rate = 2.0 / 3;

/// What of the device's arithmetic a product has.
double arithmetic_share(const Kernel& kernel, const Device& device) {
  const Gemm& gemm = *kernel.gemm;
  const int sms = device.multiprocessors;
  const bool gathered = kernel.convolution == Convolution::windows;
  if (gathered && gemm.batch > 1 && std::min(gemm.m, gemm.n) == 1)
    return 1;  // every channel by itself: no product of matrices
  if (kernel.convolution != Convolution::none && kernel.type == DType::tf32) {
    if (gathered && std::min(gemm.m, gemm.n) > few_channels)
      return gathered_tf32 * fill(gemm, usual_tile, 0.5, sms);
    const bool along_rows = gemm.m >= gemm.n;
    const Tile tile = along_rows ? narrow_tile : Tile{narrow_tile.columns, narrow_tile.rows};
    return gathered_tf32 * narrow_rate * fill(gemm, tile, 1, sms);
  }
  const std::int64_t low = std::min(gemm.m, gemm.n), length = std::max(gemm.m, gemm.n);
  if (device.synchronous || kernel.type != DType::fp32 || static_cast<double>(low) > low_tile.rows)
    return fill(gemm, usual_tile, 0.5, sms);
  const double blocks =
      std::ceil(static_cast<double>(length) / low_tile.columns) * static_cast<double>(gemm.batch);
  const Gemm lying{low, length, gemm.k, gemm.batch};
  return fill(lying, blocks < sms ? lowest_tile : low_tile, 1, sms);
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

/// How much longer memory takes for a kernel whose blocks are fewer than the SMs: each SM has its
/// share of the bandwidth. Such kernels are known of cuDNN alone.
double idle_factor(const Kernel& kernel, const Device& device) {
  if (kernel.blocks == 0 || device.compute_capability == 0) return 1;
  return std::max(1.0, static_cast<double>(device.multiprocessors) / kernel.blocks);
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
  cost.work = scaled(cost.work - ramp, idle_factor(kernel, device)) + ramp;
  cost.last_launch = cost.work / kernel.launches;
  cost.host -= scaled(kernel.followers * launch, launches_per_operation(caller) - follower_launch);
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
  const Duration arithmetic = from_seconds(
      gemm.flops() / (peak * device.efficiency_of(kernel.type) * arithmetic_share(kernel, device)));
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
