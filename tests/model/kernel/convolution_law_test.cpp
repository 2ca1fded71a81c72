// What the law of convolutions says of channels that tensor cores do not take as they are: rates
// follow from the forms beside the law, not from a run.
#include <catch2/catch.hpp>

#include "model/kernel/grouped_convolution.hpp"
#include "model/kernel/kernel_law.hpp"
#include "model/kernel/machine.hpp"

using namespace ddpsim;

namespace convolution_law_test {
namespace {

/// An H200 by its data sheet, or a device with as many lanes and bytes a second that is older.
Machine machine_of_capability(int compute_capability) {
  Machine machine;
  machine.compute_capability = compute_capability;
  machine.product_rate.fill(800e12);
  return machine;
}

/// Windows of 3 x 3 on 64 pictures of 56 x 56.
ConvolutionShape windows(std::int64_t channels, std::int64_t outputs, std::int64_t groups,
                         ConvolutionDirection direction = ConvolutionDirection::forward) {
  ConvolutionShape shape;
  shape.direction = direction;
  shape.pictures = 64;
  shape.channels = channels;
  shape.outputs = outputs;
  shape.pixels = shape.places = 56 * 56;
  shape.window = 9;
  shape.groups = groups;
  shape.channels_last = true;
  return shape;
}

double seconds(const ConvolutionShape& shape, DType type, const Machine& machine) {
  const std::int64_t bytes = size_of(type).count * shape.pictures *
                             (shape.pixels * shape.channels + shape.places * shape.outputs);
  return in_seconds(convolution_time(shape, type, {bytes}, machine).busy);
}

/// Multiplications and additions.
double operations(const ConvolutionShape& shape) {
  return 2 * real(shape.pictures * shape.places * shape.outputs * shape.window) *
         real(shape.channels / shape.groups);
}

TEST_CASE("in 16 bits channels that are no multiple of eight are padded, by a copy for each tensor",
          "[model][convolution_law]") {
  const Machine h200 = machine_of_capability(90);
  const KernelTime odd = convolution_time(windows(18, 18, 1), DType::fp16, {0}, h200);
  const KernelTime even = convolution_time(windows(24, 24, 1), DType::fp16, {0}, h200);
  const KernelTime half = convolution_time(windows(18, 24, 1), DType::fp16, {0}, h200);
  CHECK(even.launches == 1);
  CHECK(half.launches == 2);
  CHECK(odd.launches == 3);
  // Each copy reads 18 channels of 64 x 56 x 56 pixels and writes 24, two bytes of each.
  const double moved = 2.0 * 64 * 56 * 56 * (18 + 24);
  const StepConstants constants;
  const double copy =
      1e-6 * constants.layout_start_us + seconds_of(moved, constants.layout_narrow_rate, h200);
  const double whole = seconds(windows(24, 24, 1), DType::fp16, h200);
  CHECK(seconds(windows(18, 18, 1), DType::fp16, h200) == Approx(whole + 2 * copy).epsilon(1e-6));
  CHECK(seconds(windows(18, 24, 1), DType::fp16, h200) == Approx(whole + copy).epsilon(1e-6));
}

TEST_CASE("32 bits, channels first and pictures of three channels are not padded",
          "[model][convolution_law]") {
  const Machine h200 = machine_of_capability(90);
  CHECK(convolution_time(windows(18, 18, 1), DType::tf32, {0}, h200).launches == 1);
  CHECK(convolution_time(windows(3, 18, 1), DType::fp16, {0}, h200).launches == 1);
  ConvolutionShape first = windows(18, 18, 1);
  first.channels_last = false;
  CHECK(convolution_time(first, DType::fp16, {0}, h200).launches == 1);
}

TEST_CASE("a direct kernel takes as long for a product whatever a group has of channels",
          "[model][convolution_law]") {
  // Before Hopper two operations a clock of a multiprocessor: 132 x 1.98 GHz x 2 a second.
  const Machine older = machine_of_capability(75);
  for (const std::int64_t groups : {2, 4, 16, 32}) {
    const ConvolutionShape shape = windows(128, 128, groups);
    const double expected = operations(shape) / (2 * 132 * 1.98e9);
    CHECK(seconds(shape, DType::fp32, older) == Approx(expected + 3.8e-6).epsilon(1e-6));
  }
  // The gradients take twice that; on Hopper 10^12 forward, as measured on the H200.
  const ConvolutionShape weight = windows(128, 128, 4, ConvolutionDirection::weight);
  CHECK(seconds(weight, DType::fp32, older) ==
        Approx(operations(weight) / (132 * 1.98e9) + 3.8e-6).epsilon(1e-6));
  const ConvolutionShape forward = windows(128, 128, 4);
  CHECK(seconds(forward, DType::fp32, machine_of_capability(90)) ==
        Approx(operations(forward) / 1e12 + 3.8e-6).epsilon(1e-6));
}

TEST_CASE("tensor cores multiply the gradient of a weight in groups of whole tiles alone",
          "[model][convolution_law]") {
  const Machine h200 = machine_of_capability(90);
  const auto rate = [&](std::int64_t channels, std::int64_t groups) {
    const ConvolutionShape shape =
        windows(channels, channels, groups, ConvolutionDirection::weight);
    return operations(shape) /
           (in_seconds(convolution_time(shape, DType::fp16, {0}, h200).busy) - 3.8e-6);
  };
  // 16 x 10^12 a second of groups of four channels, in proportion of eight.
  CHECK(rate(128, 16) == Approx(32e12).epsilon(1e-3));
  CHECK(rate(128, 32) == Approx(2e12).epsilon(1e-3));  // groups of four
  CHECK(rate(152, 19) == Approx(2e12).epsilon(1e-3));  // no multiple of 64
}

TEST_CASE("of a tile of 64 channels in groups only those that are there count",
          "[model][convolution_law]") {
  const Machine h200 = machine_of_capability(90);
  const auto rate = [&](std::int64_t channels) {
    const ConvolutionShape shape = windows(channels, channels, channels / 8);
    return operations(shape) /
           (in_seconds(convolution_time(shape, DType::fp16, {0}, h200).busy) - 3.8e-6);
  };
  CHECK(rate(24) / rate(64) == Approx(24.0 / 64).epsilon(1e-3));
  CHECK(rate(152) / rate(64) == Approx(152.0 / 192).epsilon(1e-3));
}

TEST_CASE("windows of single channels in fp16 are cuDNN's where PyTorch says so",
          "[model][convolution_law]") {
  const Machine h200 = machine_of_capability(90);
  const auto gain = [&](ConvolutionShape shape) {
    shape.channels_last = false;
    const auto of = [&](DType type) {
      return in_seconds(convolution_time(shape, type, {0}, h200).busy);
    };
    return of(DType::bf16) / of(DType::fp16);
  };
  CHECK(gain(windows(144, 144, 144)) == Approx(1.22));
  CHECK(gain(windows(144, 144, 144, ConvolutionDirection::input)) == Approx(1.26));
  CHECK(gain(windows(16, 16, 16)) == Approx(1));  // few channels
  ConvolutionShape strided = windows(144, 144, 144);
  strided.places /= 4;
  CHECK(gain(strided) == Approx(1));
  strided.channels = strided.outputs = strided.groups = 256;
  CHECK(gain(strided) == Approx(1.22));
  ConvolutionShape wide = windows(144, 144, 144);
  wide.window = 49;
  CHECK(gain(wide) == Approx(1));
}

TEST_CASE("windows of single channels that are two pixels apart take twice as long for a result",
          "[model][convolution_law]") {
  const Machine h200 = machine_of_capability(90);
  // As many results of pictures of twice the side, or of so many that their start is nothing.
  ConvolutionShape close = windows(144, 144, 144);
  close.pictures = 64 * 1024;
  ConvolutionShape apart = close;
  apart.pixels *= 4;
  // The stride, in pixels of a picture's area, is 4; neighbours' is 1.
  CHECK(by_channel_seconds(apart, DType::fp16, h200) ==
        Approx(2 * by_channel_seconds(close, DType::fp16, h200)).epsilon(0.01));
  ConvolutionShape half = close;
  half.pixels *= 2;  // two pixels of input for each result
  CHECK(by_channel_seconds(half, DType::fp16, h200) ==
        by_channel_seconds(apart, DType::fp16, h200));
}

}  // namespace
}  // namespace convolution_law_test
