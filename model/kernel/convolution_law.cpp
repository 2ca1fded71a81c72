// Convolutions.
//
// On tensor cores a convolution is the law of products over its implicit matrices, which are never
// written out:
//
//     forward   pixels of the result x outputs   += sums over channels x window
//     input     pixels of the input x channels   += sums over outputs x window, less strides
//     weight    outputs x channels x window      += sums over pixels of the result, in 64 parts
//
// with rates of its own. Copies of layout around it are kernels of their own. Convolutions of every
// channel by itself have kernels of PyTorch's (channels first) or cuDNN's (channels last), whose
// time is that of their instructions: so much for each result, and for each element of the window.
//
// In fp32 without TF32 cuDNN chooses among direct, Winograd's and Fourier's algorithms, by rules
// that are not known. Windows of one pixel follow a form; of wider ones the law is a median, far
// off for single shapes (docs/accuracy.md); a measured table goes before it.
//
// Constants: 504 convolutions on one H200 (tests/data/h200/operations.csv.gz), and those of
// step_constants.hpp.
#include <algorithm>
#include <cmath>

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

/// Multiplications and additions, those that a stride skips left out.
double flops_of(const ConvolutionShape& shape) {
  return 2 * real(shape.pictures) * real(shape.places) * real(shape.outputs) *
         real(shape.channels) / real(shape.groups) * real(shape.window);
}

/// A window of every channel, on the multiprocessors' lanes: picoseconds on the H200 for each
/// result (forward, weight) or pixel of the input, and for each element of the window.
struct ByChannel {
  double each, of_window, start = 1.3e-6;
};

/// Does PyTorch hand a window of every channel in fp16 with channels first to cuDNN? Source: its
/// Convolution.cpp (check_cudnn_depthwise_workload_with_filter, pull request 58749), for more than
/// one picture.
bool cudnn_takes(const ConvolutionShape& shape) {
  constexpr std::int64_t fewest_channels = 32, smallest_picture = 7 * 7, large_picture = 28 * 28;
  if (shape.channels < fewest_channels || shape.pixels < smallest_picture) return false;
  if (shape.window != 9 && shape.window != 25) return false;
  if (shape.places == shape.pixels) return true;
  constexpr std::int64_t many_channels = 512, some_channels = 256;
  return shape.channels >= many_channels ||
         (shape.channels >= some_channels && shape.pixels >= large_picture);
}

/// How many times as quick cuDNN's kernels of fp16 are then as PyTorch's: the geometric mean over
/// shapes, on an A100 and an A6000 (pytorch pull request 91735).
double gain_of_cudnn(ConvolutionDirection direction) {
  return direction == ConvolutionDirection::forward ? 1.22 : 1.26;
}

double by_channel_seconds(const ConvolutionShape& shape, bool narrow, const Machine& machine) {
  const double results = real(shape.pictures) * real(shape.places) * real(shape.outputs);
  const double inputs = real(shape.pictures) * real(shape.pixels) * real(shape.channels);
  const double stride =
      std::max(1.0, real(shape.pixels) / real(std::max<std::int64_t>(1, shape.places)));
  ByChannel law{};
  double count = results;
  if (!shape.channels_last) {
    switch (shape.direction) {
      case ConvolutionDirection::forward:
        law = {3.76, 0.625};
        break;
      case ConvolutionDirection::input:
        law = {11.1, 0.68};
        count = inputs;
        break;
      case ConvolutionDirection::weight:
        law = {0.9, 1.39, 61e-6};
        break;
    }
  } else {
    switch (shape.direction) {
      case ConvolutionDirection::forward:
        law = narrow ? ByChannel{0.26, 0.151} : ByChannel{0, 0.355};
        break;
      case ConvolutionDirection::input:
        law = narrow ? ByChannel{0.07, 0.362} : ByChannel{0, 0.381};
        break;
      case ConvolutionDirection::weight:
        // Windows of 7 x 7 in 32 bits took 240 to 520 ps a result.
        law = narrow ? ByChannel{1.2, 0.085, 19e-6}
                     : ByChannel{shape.window > 25 ? 350.0 : 1.9, 0, 19e-6};
        break;
    }
    if (stride > 1.5) count *= 2;
  }
  return law.start +
         count * (law.each + law.of_window * real(shape.window)) * 1e-12 / machine.lanes;
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

/// `value` over the next multiple of `tile`: what of a tile is used.
double used(double value, double tile) {
  return value / (std::ceil(value / tile) * tile);
}

constexpr std::int64_t channels_of_tile = 64;

/// FLOP/s in fp32 of cuDNN's direct kernels of groups (conv2d_grouped_direct_kernel), which take as
/// long for a product however many channels a group has. On the H200 as measured, of groups of four
/// channels; before it, two operations a clock of a multiprocessor forward and one backward, as on
/// a V100 with 64 channels (pytorch issue 34977: 47.3 and 97.0 ms).
double direct_rate(const ConvolutionShape& shape, const Machine& machine) {
  const auto direction = static_cast<std::size_t>(shape.direction);
  constexpr double first[]{2, 2, 2}, last[]{1, 0.5, 1}, before_hopper[]{2, 1, 1};
  constexpr int hopper = 90;
  if (machine.compute_capability < hopper)
    return before_hopper[direction] * machine.multiprocessors * machine.hertz();
  return (shape.channels_last ? last : first)[direction] * 1e12 * machine.lanes;
}

/// Does cuDNN multiply the gradient of a weight in groups on tensor cores, with channels last? Its
/// kernels are of groups of 8 and 16 channels and tiles of 64 (names that end in _g8_ in a profile
/// of an RTX 3090: github:andravin/spio@0026c4fd).
bool has_grouped_gradient(const ConvolutionShape& shape) {
  const std::int64_t of_group = shape.channels / shape.groups;
  return shape.channels % channels_of_tile == 0 && (of_group == 8 || of_group == 16);
}

/// FLOP/s of groups of few channels: where each has four, more in proportion on tensor cores, which
/// read the windows of all groups of a tile, whatever of them a group has.
double grouped_rate(const ConvolutionShape& shape, DType type, const Machine& machine) {
  if (type == DType::fp32) return direct_rate(shape, machine);
  const double more = real(shape.channels) / real(shape.groups) / 4 * 1e12 * machine.lanes;
  const auto direction = static_cast<std::size_t>(shape.direction);
  if (type == DType::tf32) {
    constexpr double first[]{15, 2, 5.5}, last[]{13, 13, 4};
    return (shape.channels_last ? last : first)[direction] * more;
  }
  constexpr double first[]{22, 17, 9}, last[]{19, 16, 16}, direct_gradient = 2e12;
  if (!shape.channels_last) return first[direction] * more;
  if (shape.direction == ConvolutionDirection::weight && !has_grouped_gradient(shape))
    return direct_gradient * machine.lanes;
  return last[direction] * more * used(real(shape.channels), real(channels_of_tile));
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
    if (!shape.channels_last) rate *= used(real(forward ? shape.places : shape.pixels), 64);
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
        const double side = used(std::sqrt(real(shape.places)), 4);
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
/// are no multiple of eight into ones whose are, and results back (nhwcAddPaddingKernel in traces of
/// several GPUs).
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
  if (narrow && shape.groups == 1 && shape.channels_last && !few_channels(shape) &&
      padded(shape) != shape)
    return padded_time(shape, type, machine);
  const double memory = seconds_of(real(traffic.count), 3.6, machine);
  if (shape.groups > 1 && shape.groups == shape.channels) {
    double seconds = by_channel_seconds(shape, narrow, machine);
    if (type == DType::fp16 && !shape.channels_last && cudnn_takes(shape))
      seconds /= gain_of_cudnn(shape.direction);
    return time_of(std::max(seconds, memory), memory);
  }
  const double flops = flops_of(shape);
  constexpr double usual_start = 3.8e-6;
  if (shape.groups > 1 && (type == DType::fp32 || shape.channels / shape.groups < 32))
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
