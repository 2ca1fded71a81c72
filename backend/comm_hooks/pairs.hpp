#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/comm_hooks/values.hpp"

namespace ddpsim {

/// The values of largest magnitude, with their places: what `topk` sends.
///
///     wire: k indices (int32), then k values of the data's type
struct Pairs {
  std::vector<std::int32_t> indices;  ///< ascending
  std::vector<float> values;
};

/// The `count` of largest magnitude; of equal ones the first. NaN is larger than all.
/// Throws std::invalid_argument for more values than an index can tell apart.
Pairs select_largest(std::span<const float> values, std::size_t count);

/// The bytes that `count` pairs take on the wire; `write` wants a `wire` of that size.
std::size_t wire_size(std::size_t count, DType type);
void write(const Pairs& pairs, DType type, std::span<std::byte> wire);

/// into += the pairs of every rank, `each` bytes long. Throws std::invalid_argument for an index
/// that points nowhere.
void add_pairs(std::span<const std::byte> all, std::size_t each, DType type, std::span<float> into);

/// values = the sum of the pairs of all ranks, `each` bytes of one rank.
void spread_pairs(std::span<const std::byte> all, std::size_t each, DType type,
                  const Values& values);

}  // namespace ddpsim
