#pragma once

#include <cstdint>
#include <span>

#include "model/base/dtype.hpp"

namespace ddpsim {

// Arrays of 16-bit numbers, `type` fp16 or bf16, as their bits. All of this rounds to nearest, ties
// to even, as torch does; a NaN stays one, with bits of its own choice. Both spans of a call have
// the same length and do not overlap. Always compiled with optimisation, and uses AVX2 and F16C
// where the CPU has them.

/// to = from, rounded.
void narrow(DType type, std::span<const float> from, std::span<std::uint16_t> to);

/// to = from.
void widen(DType type, std::span<const std::uint16_t> from, std::span<float> to);

/// into += from, each sum made in fp32 and rounded.
void add16(DType type, std::span<std::uint16_t> into, std::span<const std::uint16_t> from);

/// How many of these finite numbers have no finite neighbour in `type`: `narrow` makes them
/// infinite.
std::int64_t count_overflows(DType type, std::span<const float> values);

/// How many are infinite or NaN.
std::int64_t count_not_finite(DType type, std::span<const std::uint16_t> values);

}  // namespace ddpsim
