// Convolutions in groups, which are no product that fills a tile.
//
// Every channel by itself has kernels of PyTorch's (channels first) or cuDNN's (channels last, and
// in fp16 some with channels first), whose time is that of their instructions: so much for each
// result, and for each element of the window. Groups of few channels share a tile of tensor cores
// (channels last: of 64 channels), which reads the windows of all of them: a rate in proportion to
// the channels of a group. Where tensor cores do not multiply (fp32, most gradients of weights with
// channels last), a direct kernel takes as long for a product however many channels a group has.
//
// Constants: 126 convolutions on one H200 (tests/data/h200/operations.csv.gz), of which 18 are in
// groups, and the sources beside them.
#include "model/kernel/grouped_convolution.hpp"

#include <algorithm>

#include "model/kernel/kernel_law.hpp"

namespace ddpsim {
namespace {

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

constexpr std::int64_t channels_of_tile = 64;

/// FLOP/s in fp32 of cuDNN's direct kernels of groups (conv2d_grouped_direct_kernel), which take as
/// long for a product however many channels a group has. On the H200 as measured, of groups of four
/// channels; before it, two operations a clock of a multiprocessor forward and one backward, as on
/// a V100 with 64 channels (pytorch issue 34977: 47.3 and 97.0 ms).
double direct_rate(const ConvolutionShape& shape, const Machine& machine) {
  const auto direction = static_cast<std::size_t>(shape.direction);
  constexpr double first[]{2, 2, 2}, last[]{1, 0.5, 1}, before_hopper[]{2, 1, 1};
  constexpr int hopper = 90;
  if (machine.has_cudnn() && machine.compute_capability < hopper)
    return before_hopper[direction] * machine.multiprocessors * machine.hertz();
  return (shape.channels_last ? last : first)[direction] * 1e12 * machine.lanes;
}

/// Does cuDNN multiply the gradient of a weight in groups on tensor cores, with channels last? Its
/// kernels have tiles of 64 channels and groups of 8, in a profile of an RTX 3090 (names with _g8_,
/// github:andravin/spio@0026c4fd). That there are such of 16 and of no others is an assumption.
bool has_grouped_gradient(const ConvolutionShape& shape) {
  const std::int64_t of_group = shape.channels / shape.groups;
  return shape.channels % channels_of_tile == 0 && (of_group == 8 || of_group == 16);
}

}  // namespace

double by_channel_seconds(const ConvolutionShape& shape, DType type, const Machine& machine) {
  const bool narrow = size_of(type) < size_of(DType::fp32);
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
  const double seconds =
      law.start + count * (law.each + law.of_window * real(shape.window)) * 1e-12 / machine.lanes;
  const bool by_cudnn = type == DType::fp16 && !shape.channels_last && cudnn_takes(shape);
  return by_cudnn ? seconds / gain_of_cudnn(shape.direction) : seconds;
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
  // The gradient by a direct kernel, priced by its rate: in bf16 with groups of four the rate is
  // that of fp32.
  constexpr double direct_gradient = 2e12;
  constexpr double first[]{22, 17, 9}, last[]{19, 16, 16};
  if (!shape.channels_last) return first[direction] * more;
  if (shape.direction == ConvolutionDirection::weight && !has_grouped_gradient(shape))
    return direct_gradient * machine.lanes;
  return last[direction] * more * used_of_tile(real(shape.channels), real(channels_of_tile));
}

}  // namespace ddpsim
