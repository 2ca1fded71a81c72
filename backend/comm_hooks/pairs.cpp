#include "backend/comm_hooks/pairs.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Maps a value to a whole number: magnitudes compare as these numbers do, and NaN is the largest.
std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

}  // namespace

Pairs select_largest(std::span<const float> values, std::size_t count) {
  if (values.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw std::invalid_argument(fmt::format(
        "topk: a bucket of {} elements is too large, as indices have 32 bits", values.size()));
  Pairs pairs;
  count = std::min(count, values.size());
  if (count == 0) return pairs;
  std::vector<std::uint32_t> magnitudes(values.size());
  std::ranges::transform(values, magnitudes.begin(), magnitude);
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::ranges::nth_element(magnitudes, last, std::greater<>{});
  const std::uint32_t least = *last;
  auto equal = std::count(magnitudes.begin(), last + 1, least);  // so many of the least go along
  pairs.indices.reserve(count);
  pairs.values.reserve(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t own = magnitude(values[i]);
    if (own < least || (own == least && equal-- <= 0)) continue;
    pairs.indices.push_back(static_cast<std::int32_t>(i));
    pairs.values.push_back(values[i]);
  }
  assert(pairs.indices.size() == count);
  return pairs;
}

std::size_t wire_size(std::size_t count, DType type) {
  return count * (sizeof(std::int32_t) + static_cast<std::size_t>(size_of(type).count));
}

void write(const Pairs& pairs, DType type, std::span<std::byte> wire) {
  const std::size_t count = pairs.indices.size();
  assert(wire.size() == wire_size(count, type));
  Numbers values;
  values.resize(type, count);
  values.values().assign(pairs.values);
  const auto indices = std::as_bytes(std::span(pairs.indices));
  std::ranges::copy(indices, wire.begin());
  std::ranges::copy(values.values().bytes(),
                    wire.begin() + static_cast<std::ptrdiff_t>(indices.size()));
}

void add_pairs(std::span<const std::byte> all, std::size_t each, DType type,
               std::span<float> into) {
  if (each == 0) return;
  const std::size_t count = each / wire_size(1, type);
  std::vector<std::int32_t> indices(count);
  Numbers values;
  values.resize(type, count);
  std::vector<float> room(count);
  for (std::size_t begin = 0; begin + each <= all.size(); begin += each) {
    const std::span<const std::byte> one = all.subspan(begin, each);
    const std::span<std::byte> bytes = values.values().bytes();
    std::memcpy(indices.data(), one.data(), count * sizeof(std::int32_t));
    std::memcpy(bytes.data(), one.data() + count * sizeof(std::int32_t), bytes.size());
    const std::span<const float> wide = values.values().in_fp32(room);
    for (std::size_t i = 0; i < count; ++i) {
      if (indices[i] < 0 || static_cast<std::size_t>(indices[i]) >= into.size())
        throw std::invalid_argument(
            fmt::format("a rank sent the value of element {} of {}", indices[i], into.size()));
      into[static_cast<std::size_t>(indices[i])] += wide[i];
    }
  }
}

void spread_pairs(std::span<const std::byte> all, std::size_t each, DType type,
                  const Values& values) {
  const InFull sum(values);
  std::ranges::fill(sum.get(), 0.0F);
  add_pairs(all, each, type, sum.get());
  sum.put_back();
}

}  // namespace ddpsim
