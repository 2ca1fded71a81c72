#include "model/workload/eager_kernels.hpp"

#include <catch2/catch.hpp>

#include "model/workload/convolution.hpp"
#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;
using namespace std::chrono_literals;

namespace eager_kernels_test {
namespace {

/// Picoseconds are exact in a sum of figures with two decimals of a microsecond.
Duration host_of(const std::vector<KernelPart>& parts) {
  Duration sum{};
  for (const KernelPart& part : parts) sum += part.host;
  return sum;
}

std::vector<PatternKind> kinds_of(const std::vector<KernelPart>& parts) {
  std::vector<PatternKind> kinds;
  for (const KernelPart& part : parts)
    if (const auto* pattern = std::get_if<MemoryPattern>(&part.kernel.shape))
      kinds.push_back(pattern->of);
  return kinds;
}

ConvolutionCall convolution(std::int64_t window, DType type, bool channels_last = false) {
  ConvolutionCall call;
  call.shape = {.pictures = 32,
                .channels = 256,
                .pixels = 196,
                .outputs = 512,
                .places = 196,
                .window = window,
                .channels_last = channels_last};
  call.type = type;
  return call;
}

TEST_CASE("an eager kernel moves its passes over tensors of its format", "[model][eager_kernels]") {
  // 100 elements: 3 x 4 bytes in fp32, 2 x 2 bytes in bf16.
  const auto parts = parts_of({{100, {3}}, {100, {eager::strided(2)}, DType::bf16}},
                              ddpsim::Pass::forward, DType::fp32);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].kernel.traffic == Bytes{1200});
  CHECK(parts[1].kernel.traffic == Bytes{400});
  CHECK(parts[1].kernel.type == DType::bf16);
  CHECK(kinds_of(parts) == std::vector{PatternKind::elementwise, PatternKind::strided});
}

TEST_CASE("a call takes the host its row of the table, and launches beyond it their own",
          "[model][eager_kernels]") {
  using namespace eager;
  const auto host = [](std::vector<EagerKernel> kernels, ddpsim::Pass pass) {
    return host_of(parts_of({{100, std::move(kernels)}}, pass, DType::fp32));
  };
  CHECK(host({3}, ddpsim::Pass::forward) == 7'580ns);
  CHECK(host({3}, ddpsim::Pass::backward) == 15'170ns);
  CHECK(host({3, again(3)}, ddpsim::Pass::backward) == 15'170ns + 6'960ns);
  CHECK(host({1, follows(1), follows(1)}, ddpsim::Pass::forward) == 7'580ns + 2 * 5us);
  // The backward pass of a layer norm holds two launches.
  CHECK(host({of(Call::layer_norm, 3), follows(2)}, ddpsim::Pass::backward) == 43'920ns);
  CHECK(host({only_cpu(2)}, ddpsim::Pass::forward) == Duration::zero());
}

TEST_CASE("sums of many rows clear what their blocks count in", "[model][eager_kernels]") {
  const auto kinds = [](std::int64_t rows) {
    return kinds_of(
        parts_of({{rows, {eager::sum_of_rows(1, rows, 8)}}}, ddpsim::Pass::backward, DType::fp32));
  };
  CHECK(kinds(4095) == std::vector{PatternKind::sum_of_rows});
  CHECK(kinds(4096) == std::vector{PatternKind::sum_of_rows, PatternKind::fill});
}

TEST_CASE("cuBLAS cuts the sum of a product of few tiles in fp32", "[model][eager_kernels]") {
  // The classifier of ResNet-50 at batch 32: 8 tiles, in 5 parts, on devices of more than 16
  // multiprocessors. Each part is written and read in 4 bytes.
  const auto parts =
      parts_of(Gemm{32, 1000, 2048}, DType::fp32, {}, {2, Call::linear}, ddpsim::Pass::forward);
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].kernel.traffic == Bytes{2 * 4 * 5 * 32 * 1000});
  CHECK(parts[1].multiprocessors == 17);
  CHECK(host_of(parts) == 25'430ns + 5us);
  CHECK(parts_of(Gemm{32, 1000, 2048}, DType::tf32, {}, {}, ddpsim::Pass::forward).size() == 1);
  CHECK(parts_of(Gemm{32, 1000, 2048}, DType::bf16, {}, {}, ddpsim::Pass::forward).size() == 1);
}

TEST_CASE("tensor cores want channels last, and copies change the layout",
          "[model][eager_kernels]") {
  using enum PatternKind;
  const std::vector three{layout, layout, fill, layout};
  CHECK(kinds_of(forward_parts(convolution(9, DType::fp16))) == three);
  // A window of one pixel multiplies each picture as it lies; channels last need nothing.
  CHECK(kinds_of(forward_parts(convolution(1, DType::fp16))).empty());
  CHECK(kinds_of(forward_parts(convolution(9, DType::fp16, true))) == std::vector{fill});
  // In fp32 cuDNN's Fourier transform has five kernels, for pictures of up to 28 x 28.
  const auto parts = forward_parts(convolution(9, DType::fp32));
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].kernel.launches == 5);
  // A convolution's row holds two launches.
  CHECK(host_of(parts) == 24'190ns + 3 * 5us);
}

TEST_CASE("gradients of a convolution are of one call", "[model][eager_kernels]") {
  ConvolutionCall call = convolution(1, DType::bf16);
  call.biased = true;
  const ConvolutionGradients gradients = gradient_parts(call, true);
  CHECK(gradients.input.size() == 1);
  // Pictures' parts are fewer than what copies of layout would move, and summed.
  CHECK(kinds_of(gradients.weight) == std::vector{PatternKind::elementwise});
  CHECK(kinds_of(gradients.bias) == std::vector{PatternKind::reduce});
  // Four launches, three of which are in its time.
  CHECK(host_of(gradients.input) + host_of(gradients.weight) + host_of(gradients.bias) ==
        56'120ns + 5us);
  CHECK(gradient_parts(call, false).input.empty());
}

TEST_CASE("a recipe knows what a GPU runs for each of its kernels", "[model][eager_kernels]") {
  for (const Workload& workload : one_of_each_family())
    for (const Layer& layer : workload.layers)
      for (const auto* pass : {&layer.forward, &layer.backward})
        for (const Kernel& kernel : *pass) {
          CAPTURE(workload.name, layer.name, kernel.name);
          CHECK_FALSE(kernel.parts.empty());
          CHECK(kernel.calls >= 1);
        }
}

}  // namespace
}  // namespace eager_kernels_test
