#include "model/workload/convolution.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

constexpr std::int64_t long_sum = 2048;
/// Tiles of 128 x 128 of a result below which it is summed in parts: half of an A100's SMs.
constexpr std::int64_t parts_below = 54;

bool in_parts(const Gemm& gemm) {
  const auto tiles = [](std::int64_t extent) { return (extent + 127) / 128; };
  return tiles(gemm.m) * tiles(gemm.n) * gemm.batch < parts_below;
}

}  // namespace

AroundProduct around_forward(const ConvolutionLayout& layout, const Gemm& gemm, Bytes data,
                             Bytes weight, Bytes result) {
  if (layout.plain || layout.first_of_network) return {};
  const bool back = gemm.k >= long_sum;
  return {2 * (data + weight), back ? 2 * result : Bytes{}, 2, back ? 1 : 0};
}

AroundProduct around_data_gradient(const ConvolutionLayout& layout, Bytes gradient, Bytes weight,
                                   Bytes result) {
  if (layout.plain) return {};
  return {2 * (gradient + weight), 2 * result, 2, 1};
}

AroundProduct around_weight_gradient(const ConvolutionLayout& layout, const Gemm& gemm,
                                     Bytes gradient, Bytes data, Bytes result) {
  AroundProduct around;
  if (layout.plain) {  // the product writes each picture's part, the sum reads them
    around.moved_after = gemm.batch > 1 ? 2 * gemm.batch * result : Bytes{};
    around.launches_after = gemm.batch > 1 ? 1 : 0;
    return around;
  }
  around.moved_before = 2 * (gradient + data);
  around.launches_before = 2;
  around.launches_after = (in_parts(gemm) ? 1 : 0) + (layout.wide_window ? 1 : 0);
  around.moved_after = 2 * around.launches_after * result;
  return around;
}

}  // namespace ddpsim
