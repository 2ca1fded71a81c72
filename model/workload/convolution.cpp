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
  return {data + weight, back ? result : Bytes{}, 2, back ? 1 : 0};
}

AroundProduct around_data_gradient(const ConvolutionLayout& layout, Bytes gradient, Bytes weight,
                                   Bytes result) {
  if (layout.plain) return {};
  return {gradient + weight, result, 2, 1};
}

AroundProduct around_weight_gradient(const ConvolutionLayout& layout, const Gemm& gemm,
                                     Bytes gradient, Bytes data, Bytes result) {
  AroundProduct around;
  if (layout.plain || in_parts(gemm)) ++around.launches_after;
  if (!layout.plain) {
    around.copied_before = gradient + data;
    around.launches_before = 2;
    if (layout.wide_window) ++around.launches_after;
  }
  around.copied_after = around.launches_after * result;
  return around;
}

Bytes plain_traffic(const Gemm& gemm, Bytes element) {
  const auto extent = [](std::int64_t length) { return static_cast<double>(length); };
  const double elements =
      extent(gemm.batch) * (extent(gemm.m) * extent(gemm.k) + extent(gemm.k) * extent(gemm.n) +
                            extent(gemm.m) * extent(gemm.n));
  constexpr double most = 0x1p62;  // far beyond any memory
  return Bytes{
      static_cast<std::int64_t>(std::min(elements * static_cast<double>(element.count), most))};
}

}  // namespace ddpsim
