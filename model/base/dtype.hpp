#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Numbers as they are stored, and as a device multiplies them (tf32: stored as fp32).
enum class DType : std::uint8_t { fp32, tf32, bf16, fp16 };

inline constexpr std::array all_dtypes{DType::fp32, DType::tf32, DType::bf16, DType::fp16};

/// Bytes one element takes in memory.
constexpr Bytes size_of(DType type) {
  switch (type) {
    case DType::fp32:
    case DType::tf32:
      return {4};
    case DType::bf16:
    case DType::fp16:
      return {2};
  }
  return {4};
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::fp32:
      return "fp32";
    case DType::tf32:
      return "tf32";
    case DType::bf16:
      return "bf16";
    case DType::fp16:
      return "fp16";
  }
  return "?";
}

/// The type with that name, if there is one.
constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (const DType type : all_dtypes)
    if (name_of(type) == name) return type;
  return std::nullopt;
}

}  // namespace ddpsim
