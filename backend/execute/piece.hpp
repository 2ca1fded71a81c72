#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/base/dtype.hpp"

namespace ddpsim::execute {

/// A slice of a buffer where it lies on a rank: consecutive numbers of one type.
struct Piece {
  DType type = DType::fp32;
  std::byte* data = nullptr;
  std::int64_t count = 0;

  std::span<std::byte> bytes() const {
    return {data, static_cast<std::size_t>(count * size_of(type).count)};
  }
  bool empty() const { return count == 0; }
  /// `count` elements from `begin` on.
  Piece part(std::int64_t begin, std::int64_t elements) const {
    return {type, data + begin * size_of(type).count, elements};
  }
  bool operator==(const Piece&) const = default;
};

}  // namespace ddpsim::execute
