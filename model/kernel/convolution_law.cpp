// Convolutions.
//
// On tensor cores a convolution is the law of products over its implicit matrices, which are never
// written out:
//
//     forward   pixels of the result x outputs   += sums over channels x window
//     input     pixels of the input x channels   += sums over outputs x window, less strides
//     weight    outputs x channels x window      += sums over pixels of the result, in 64 parts
//
// with rates of its own. Copies of layout around it are kernels of their own; copies that pad
// channels are not, and are counted here. Groups are in grouped_convolution.cpp.
//
// In fp32 without TF32 cuDNN chooses among direct, Winograd's and Fourier's algorithms, by rules
// that are not known. Windows of one pixel follow a form; of wider ones the law is a median, far
// off for single shapes (docs/accuracy.md); a measured table goes before it.
//
// Constants: 504 convolutions on one H200 (tests/data/h200/operations.csv.gz), and those of
// step_constants.hpp.
#include <algorithm>
#include <cmath>

#include "model/kernel/grouped_convolution.hpp"
#include "model/kernel/kernel_law.hpp"
#include "model/kernel/machine.hpp"
#include "model/kernel/product_law.hpp"

namespace ddpsim {
namespace {

KernelTime time_of(double seconds, double memory) {
  KernelTime time;
  time.busy = from_seconds(seconds);
  time.memory_fraction = static_cast<float>(std::min(1.0, memory / std::max(seconds, 1e-12)));
  return time;
}

/// Multiplications and additions of a convolution; those that a stride skips are not counted.
double flops_of(const ConvolutionShape& shape) {
  return 2 * real(shape.pictures) * real(shape.places) * real(shape.outputs) *
         real(shape.channels) / real(shape.groups) * real(shape.window);
}

bool few_channels(const ConvolutionShape& shape) {
  constexpr std::int64_t aligned = 4, few = 16;
  return shape.channels % aligned != 0 && shape.channels < few;
}

/// Pictures of few channels, whose sums are not aligned: FLOP/s by the length of the sum, between
/// measured windows of 4 x 4, 7 x 7 and 14 x 14 of three channels; in proportion below.
double few_channels_rate(const ConvolutionShape& shape, DType type, const Machine& machine) {
  struct Rates {
    double at_48, at_147, at_588;
  };
  const bool weight = shape.direction == ConvolutionDirection::weight;
  const bool narrow = size_of(type) < size_of(DType::fp32);
  Rates rates{};
  if (type == DType::fp32)
    rates = weight ? Rates{13, 18, 22} : Rates{12, 20, 22};
  else if (!shape.channels_last)
    rates = narrow ? (weight ? Rates{8, 30, 50} : Rates{17, 22, 31})
                   : (weight ? Rates{12, 28, 32} : Rates{12, 24, 30});
  else
    rates = narrow ? (weight ? Rates{15, 50, 73} : Rates{14, 33, 38})
                   : (weight ? Rates{12, 28, 32} : Rates{12, 24, 30});
  const double sum = real(shape.channels) * real(shape.window);
  const auto between = [&](double low, double high, double at_low, double at_high) {
    return at_low + (at_high - at_low) * std::log(sum / low) / std::log(high / low);
  };
  double rate = 0;
  if (sum <= 48)
    rate = rates.at_48 * sum / 48;
  else if (sum <= 147)
    rate = between(48, 147, rates.at_48, rates.at_147);
  else
    rate = between(147, 588, rates.at_147, std::min(rates.at_588 * 1.5, rates.at_588));
  return std::min(rate, rates.at_588) * 1e12 * machine.lanes;
}

/// FLOP/s in fp32 of a window of one pixel. A block of threads computes a tile of 128 columns, or a
/// smaller one that reads its operands more often, and before its first result reads what 50
/// elements of the sum take; with channels first its rows are pixels of one picture, 64 together.
double fp32_pixel_rate(const ConvolutionShape& shape, const Machine& machine) {
  const bool forward = shape.direction == ConvolutionDirection::forward;
  double rate = 0;
  if (shape.direction == ConvolutionDirection::weight) {
    constexpr double smallest = 64.0 * 64;  // elements of a weight, first of which rates were found
    rate = shape.channels_last
               ? 19
               : 8 * std::pow(real(shape.channels) * real(shape.outputs) / smallest, 0.15);
  } else {
    const double sum = real(forward ? shape.channels : shape.outputs);
    const double columns = real(forward ? shape.outputs : shape.channels);
    rate = forward ? (shape.channels_last ? 27 : 46) : (shape.channels_last ? 23 : 33);
    rate *= sum / (sum + 50) * std::pow(std::min(1.0, columns / 128), 0.4);
    if (!shape.channels_last) rate *= used_of_tile(real(forward ? shape.places : shape.pixels), 64);
  }
  return rate * 1e12 * machine.lanes;
}

/// What the convolutions of ResNet-50 reach in fp32 of the rate of plain products on a V100, beside
/// the bytes they move: forward, the input's and the weight's gradients take 22.6, 22.6 and 24.9 ms
/// a step of batch 32. Source: a trace, as the tests of PyTorch's profiler keep its sums
/// (github:pytorch/kineto@0ab7eadb59b4: tb_plugin/test/result_check_file.txt). cuDNN's kernels for
/// Hopper reach less of their device. That those of all devices before are as V100's is an
/// assumption; T4's, which reached less still in six networks (docs/accuracy.md), are taken as
/// Hopper's.
constexpr double share_before_hopper[]{0.975, 0.94, 0.88};
bool multiplies_like_volta(const Machine& machine) {
  constexpr int turing = 75, hopper = 90;
  return machine.compute_capability < hopper && machine.compute_capability != turing;
}

/// FLOP/s in fp32, without tensor cores, on Hopper. Of wider windows the rates of forward and of
/// the input's gradient are medians: where cuDNN takes another algorithm they are up to 2.7 times
/// as high.
double fp32_rate(const ConvolutionShape& shape, const Machine& machine) {
  if (shape.window == 1) return fp32_pixel_rate(shape, machine);
  // Winograd's algorithm: weights' gradients of 3 x 3 windows without stride, of many channels,
  // over which it spreads its transforms of tiles of 4 x 4.
  constexpr double winograd_channels = 128;
  const double fewest = real(std::min(shape.channels, shape.outputs));
  double rate = 0;
  switch (shape.direction) {
    case ConvolutionDirection::forward:
      rate = 30;
      break;
    case ConvolutionDirection::input:
      rate = 27;
      break;
    case ConvolutionDirection::weight:
      rate = 21;
      if (shape.window == 9 && shape.places == shape.pixels && fewest >= winograd_channels) {
        const double side = used_of_tile(std::sqrt(real(shape.places)), 4);
        rate = 165 * fewest / (fewest + 150) * side * side * (shape.channels_last ? 0.87 : 1);
      }
      break;
  }
  return rate * 1e12 * machine.lanes;
}

/// What a device's multiprocessors do for a convolution besides multiplying (finding and gathering
/// what a window covers) takes time of their lanes, whatever its tensor cores make of products: the
/// FLOP/s of a convolution that has `share` of the rate of plain products where that is `plain` and
/// the lanes `lanes` of the H200's.
double gathered(double rate, double share, double plain, double lanes, const Machine& machine) {
  return 1 / (1 / rate + (1 / share - 1) / plain * lanes / machine.lanes);
}

/// The implicit product of the whole convolution.
Gemm implicit(const ConvolutionShape& shape) {
  const std::int64_t results = shape.pictures * shape.places;
  const std::int64_t inputs = shape.pictures * shape.pixels;
  const std::int64_t skipped =
      std::max<std::int64_t>(1, shape.pixels / std::max<std::int64_t>(1, shape.places));
  switch (shape.direction) {
    case ConvolutionDirection::forward:
      return {results, shape.outputs, shape.channels * shape.window};
    case ConvolutionDirection::input:
      return {inputs, shape.channels,
              std::max<std::int64_t>(1, shape.outputs * shape.window / skipped)};
    case ConvolutionDirection::weight:
      return {shape.outputs, shape.channels * shape.window, results};
  }
  return {};
}

/// Tensor cores are fed 16 bytes at a time: with channels last cuDNN copies tensors whose channels
/// are no multiple of eight into ones whose are, and results back (nhwcAddPaddingKernel, in public
/// profiles of several GPUs).
constexpr std::int64_t together = 8;
std::int64_t padded(std::int64_t channels) {
  return (channels + together - 1) / together * together;
}

ConvolutionShape padded(ConvolutionShape shape) {
  shape.channels = padded(shape.channels);
  shape.outputs = padded(shape.outputs);
  return shape;
}

/// The padded convolution in 16 bits, and a copy for data and for result if their channels need it:
/// at the rate of copies between layouts, which is an assumption. Weights are small.
KernelTime padded_time(const ConvolutionShape& shape, DType type, const Machine& machine) {
  const ConvolutionShape whole = padded(shape);
  const double element = real(size_of(type).count);
  const double inputs = real(shape.pictures * shape.pixels) * element;
  const double results = real(shape.pictures * shape.places) * element;
  const double moved = inputs * real(whole.channels) + results * real(whole.outputs) +
                       element * real(whole.channels * whole.outputs * shape.window);
  KernelTime time = convolution_time(whole, type, {static_cast<std::int64_t>(moved)}, machine);
  const StepConstants& constants = machine.constants;
  const auto copy = [&](double pixels, std::int64_t channels) {
    if (channels % together == 0) return;
    const double seconds =
        1e-6 * constants.layout_start_us + seconds_of(pixels * real(channels + padded(channels)),
                                                      constants.layout_narrow_rate, machine);
    time.busy += from_seconds(seconds);
    ++time.launches;
  };
  copy(inputs, shape.channels);
  copy(results, shape.outputs);
  return time;
}

}  // namespace

KernelTime convolution_time(const ConvolutionShape& shape, DType type, Bytes traffic,
                            const Machine& machine) {
  const double rate = rate_of_products(type, machine);
  const bool narrow = size_of(type) < size_of(DType::fp32);
  if (narrow && machine.has_cudnn() && shape.groups == 1 && shape.channels_last &&
      !few_channels(shape) && padded(shape) != shape)
    return padded_time(shape, type, machine);
  const double memory = seconds_of(real(traffic.count), 3.6, machine);
  if (shape.groups > 1 && shape.groups == shape.channels)
    return time_of(std::max(by_channel_seconds(shape, type, machine), memory), memory);
  const double flops = flops_of(shape);
  constexpr double usual_start = 3.8e-6;
  const bool direct = type == DType::fp32 && machine.has_cudnn();
  if (shape.groups > 1 && (direct || shape.channels / shape.groups < 32))
    return time_of(usual_start + std::max(flops / grouped_rate(shape, type, machine), memory),
                   memory);
  if (few_channels(shape))
    return time_of(usual_start + std::max(flops / few_channels_rate(shape, type, machine), memory),
                   memory);
  if (type == DType::fp32 && multiplies_like_volta(machine))
    return time_of(
        usual_start +
            flops / (share_before_hopper[static_cast<std::size_t>(shape.direction)] * rate) +
            seconds_of(real(traffic.count), 4.2, machine),
        memory);
  if (type == DType::fp32)
    return time_of(
        usual_start + std::max(flops / std::min(fp32_rate(shape, machine), 2.5 * rate), memory),
        memory);
  const bool hopper = machine.has_warp_group_products();
  // Fitted to forward passes of six networks on two A100 (tests/experiments/forward_passes.py).
  constexpr double ampere_tf32 = 1;
  constexpr double lanes_of_a100 = 0.583;
  constexpr double narrow_plain = 790e12;  // plain products in 16 bits on the H200
  ProductRates rates;
  // Pictures multiplied by themselves, whose rows do not begin at 16 bytes, take a kernel of the
  // generation before that loads two numbers at a time.
  constexpr std::int64_t together = 8;
  const bool by_itself = shape.direction != ConvolutionDirection::weight && !shape.channels_last &&
                         shape.window == 1 && shape.places == shape.pixels;
  // Odd pictures are copied.
  const bool unaligned =
      narrow && by_itself && shape.pixels % 2 == 0 && shape.pixels % together != 0;
  rates.memory_rate = 3.6;
  rates.element = real(size_of(type).count);
  rates.operand_rate = (narrow ? 2009e9 : 767e9) * machine.clock;
  rates.per_tile = (narrow ? 0.65e-6 : 0.96e-6) / machine.clock;
  // What of plain products is reached on the H200, in TF32 before Hopper on an A100.
  double share = narrow ? 779.0 / 790 : hopper ? 311.0 / 404 : ampere_tf32;
  if (shape.direction == ConvolutionDirection::input) share *= narrow ? 0.95 : 0.91;
  if (shape.direction == ConvolutionDirection::weight) {
    share *= narrow ? 0.88 : hopper ? 0.55 : 0.9;
    rates.most_parts = 64;
  }
  if (shape.window > 1 && narrow) share *= 0.83;
  if (narrow)
    rates.rate = gathered(rate, share, narrow_plain, 1, machine);
  else if (hopper)
    rates.rate = gathered(rate, share, 404e12, 1, machine);
  else
    rates.rate = gathered(rate, share, 131e12, lanes_of_a100, machine);
  if (unaligned)
    rates.rate =
        std::min(rates.rate, machine.constants.unaligned_picture * narrow_plain * machine.lanes);
  Gemm gemm = implicit(shape);
  if (shape.groups > 1) {
    gemm.batch = shape.groups;
    gemm.n /= shape.groups;
    if (shape.direction != ConvolutionDirection::weight) gemm.k /= shape.groups;
    if (shape.direction == ConvolutionDirection::weight) {
      gemm.m /= shape.groups;
    }
    gemm.n = std::max<std::int64_t>(1, gemm.n);
    gemm.k = std::max<std::int64_t>(1, gemm.k);
    gemm.m = std::max<std::int64_t>(1, gemm.m);
  }
  const double start = narrow ? 3.8e-6 : 5.8e-6;
  const double seconds = tiled_seconds(gemm, type, real(traffic.count), rates, machine) *
                             machine.constants.product_of_a_step +
                         start / machine.clock;
  return time_of(seconds, memory);
}

}  // namespace ddpsim
