#pragma once

#include <cstdint>
#include <span>

#include "backend/comm_hooks/values.hpp"
#include "backend/execute/piece.hpp"

namespace ddpsim {

/// A piece of fp32 numbers.
inline std::span<float> floats(const execute::Piece& piece) {
  return {reinterpret_cast<float*>(piece.data), static_cast<std::size_t>(piece.count)};
}

/// A piece of fp32, fp16 or bf16 numbers.
inline Values values_of(const execute::Piece& piece) {
  if (size_of(piece.type) == Bytes{4}) return Values(floats(piece));
  return {piece.type,
          {reinterpret_cast<std::uint16_t*>(piece.data), static_cast<std::size_t>(piece.count)}};
}

}  // namespace ddpsim
