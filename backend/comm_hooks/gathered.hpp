#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/comm_hooks/values.hpp"

namespace ddpsim {

// What a comm hook hands to an all-gather of the data, and what it makes of everyone's.

/// This rank's part of the data: `size` bytes, the last ranks' filled up with zeros.
void take_part(const Values& values, int rank, std::size_t size, std::vector<std::byte>& part);

/// values = the ranks' parts, one behind the other.
void put_parts_together(std::span<const std::byte> all, const Values& values);

/// values = the sum over ranks of as many numbers from each, of `type`.
void sum_gathered(std::span<const std::byte> all, DType type, const Values& values);

}  // namespace ddpsim
