#include "model/kernel/operation_table.hpp"

#include <algorithm>
#include <iterator>

namespace ddpsim {
namespace {

/// How far beyond the measured sizes a row goes on.
constexpr double furthest = 4;

/// The whole number that stands for a member of an enumeration.
template <typename T>
std::int64_t number(T value) {
  return static_cast<std::int64_t>(value);
}

/// What a pattern's class has fixed, and its size.
struct PatternPlace {
  std::int64_t fixed = 0, inner = 0;
  double size = 0;
};

PatternPlace place_of(const MemoryPattern& pattern, Bytes traffic) {
  switch (pattern.of) {
    case PatternKind::elementwise:
    case PatternKind::widening:
    case PatternKind::mixed:
    case PatternKind::gelu:
    case PatternKind::dropout:
    case PatternKind::strided:
    case PatternKind::layout:
    case PatternKind::fill:
    case PatternKind::sum:
      return {0, 0, real(traffic.count)};
    case PatternKind::gather:
    case PatternKind::embedding_sum:
    case PatternKind::sum_of_rows:
    case PatternKind::reduce:
    case PatternKind::softmax:
    case PatternKind::log_softmax:
    case PatternKind::layer_norm:
    case PatternKind::layer_norm_weights:
    case PatternKind::group_norm:
    case PatternKind::max_pool:
    case PatternKind::pool:
      return {pattern.columns, 0, real(pattern.rows)};
    case PatternKind::batch_norm:
    case PatternKind::batch_norm_own:
    case PatternKind::batch_norm_statistics:
    case PatternKind::batch_norm_transform:
      return {pattern.rows, pattern.inner, real(pattern.columns)};
  }
  return {};
}

double ratio(Duration over, Duration under) {
  return in_seconds(over) / std::max(in_seconds(under), 1e-12);
}

/// The gradient of the weight of a window of one pixel is a product, and that of one with inputs
/// and outputs exchanged is the same product, transposed: 644 us and 641 us of 256 and 1024
/// channels in fp32 on an H200 (tests/data/h200/kernels.csv.gz).
std::optional<DeviceKernel> transposed(const DeviceKernel& kernel) {
  const auto* shape = std::get_if<ConvolutionShape>(&kernel.shape);
  if (shape == nullptr || shape->direction != ConvolutionDirection::weight || shape->window != 1 ||
      shape->places != shape->pixels || shape->groups != 1)
    return std::nullopt;
  DeviceKernel other = kernel;
  auto& exchanged = std::get<ConvolutionShape>(other.shape);
  std::swap(exchanged.channels, exchanged.outputs);
  return other;
}

}  // namespace

OperationPlace place_of(const DeviceKernel& kernel) {
  struct Placed {
    const DeviceKernel& kernel;
    OperationPlace operator()(const MemoryPattern& pattern) const {
      const PatternPlace place = place_of(pattern, kernel.traffic);
      return {{0, number(kernel.type), number(pattern.of), pattern.backward, pattern.channels_last,
               place.fixed, place.inner},
              place.size};
    }
    OperationPlace operator()(const Product& product) const {
      const Gemm& gemm = product.gemm;
      const bool of_weight = product.along_k == 0;
      return {{1, number(kernel.type), product.along_k, of_weight ? gemm.m : gemm.k, gemm.n,
               gemm.batch},
              real(of_weight ? gemm.k : gemm.m)};
    }
    OperationPlace operator()(const ConvolutionShape& shape) const {
      return {{2, number(kernel.type), number(shape.direction), shape.channels, shape.pixels,
               shape.outputs, shape.places, shape.window, shape.groups, shape.channels_last},
              real(shape.pictures)};
    }
    OperationPlace operator()(const AttentionOperation& operation) const {
      const Attention& shape = operation.shape;
      const int flags = shape.causal + 2 * shape.backward + 4 * operation.masked;
      return {{3, number(kernel.type), number(operation.implementation), flags, shape.queries,
               shape.keys, shape.size, shape.value_size == 0 ? shape.size : shape.value_size},
              real(shape.batch) * real(shape.heads)};
    }
  };
  return std::visit(Placed{kernel}, kernel.shape);
}

OperationRows rows_of(const std::vector<MeasuredOperation>& operations) {
  OperationRows rows;
  for (const MeasuredOperation& each : operations) {
    const OperationPlace place = place_of(each.kernel);
    rows[place.of].emplace(place.size, each);
  }
  return rows;
}

std::optional<OperationTable::Found> OperationTable::find(const DeviceKernel& kernel, Duration law,
                                                          const Device& device) const {
  const OperationPlace place = place_of(kernel);
  const OperationRows& rows = rows_();
  auto found = rows.find(place.of);
  if (found == rows.end())
    if (const auto same = transposed(kernel)) found = rows.find(place_of(*same).of);
  if (found == rows.end()) return std::nullopt;
  const Device& measured = measured_on_ ? *measured_on_ : device;
  const Duration law_there = measured_on_ ? law_time(kernel, measured).busy : law;
  const double to_this_device = ratio(law, law_there);

  const auto& sizes = found->second;
  const auto above = sizes.lower_bound(place.size);
  if (above != sizes.end() && above->first == place.size)
    return Found{scaled(above->second.time, to_this_device), KernelSource::measured};
  if (above != sizes.end() && above != sizes.begin()) {
    const auto& [small, before] = *std::prev(above);
    const auto& [large, after] = *above;
    const double share = (place.size - small) / (large - small);
    return Found{scaled(before.time + scaled(after.time - before.time, share), to_this_device),
                 KernelSource::between};
  }
  const auto& [size, nearest] = above == sizes.end() ? *std::prev(above) : *above;
  if (std::max(size, place.size) > furthest * std::min(size, place.size)) return std::nullopt;
  const double to_this_size = ratio(law_there, law_time(nearest.kernel, measured).busy);
  return Found{scaled(nearest.time, to_this_size * to_this_device), KernelSource::beyond};
}

}  // namespace ddpsim
