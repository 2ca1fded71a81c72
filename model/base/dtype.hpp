#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Numbers as they are stored, and as a device multiplies them (tf32: stored as fp32). Those from
/// fp64 on are only stored, sent and updated: no device of the catalogue has a rate for them.
enum class DType : std::uint8_t {
  fp32,
  tf32,
  bf16,
  fp16,
  fp64,
  complex64,
  complex128,
  fp8_e4m3,
  fp8_e5m2
};

/// Formats that devices multiply.
inline constexpr std::array all_dtypes{DType::fp32, DType::tf32, DType::bf16, DType::fp16};

/// Formats that a parameter and its gradient may have; tf32 stands for fp32.
inline constexpr std::array stored_dtypes{DType::fp32,       DType::tf32,     DType::bf16,
                                          DType::fp16,       DType::fp64,     DType::complex64,
                                          DType::complex128, DType::fp8_e4m3, DType::fp8_e5m2};

/// Bytes one element takes in memory.
constexpr Bytes size_of(DType type) {
  switch (type) {
    case DType::fp32:
    case DType::tf32:
      return {4};
    case DType::bf16:
    case DType::fp16:
      return {2};
    case DType::fp64:
    case DType::complex64:
      return {8};
    case DType::complex128:
      return {16};
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      return {1};
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
    case DType::fp64:
      return "fp64";
    case DType::complex64:
      return "complex64";
    case DType::complex128:
      return "complex128";
    case DType::fp8_e4m3:
      return "fp8_e4m3";
    case DType::fp8_e5m2:
      return "fp8_e5m2";
  }
  return "?";
}

/// The type with that name, if there is one.
constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (const DType type : stored_dtypes)
    if (name_of(type) == name) return type;
  return std::nullopt;
}

}  // namespace ddpsim
