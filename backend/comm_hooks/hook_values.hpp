#pragma once

#include <cstdint>
#include <span>

#include "backend/comm_hooks/values.hpp"

namespace ddpsim {

/// "The data" of a comm hook on the host (see CommAction): the bucket itself or, after a cast to 16
/// bit or after padding, numbers of their own.
class HookValues {
 public:
  Values in(std::span<float> bucket) { return apart_ ? own_.values() : Values(bucket); }

  /// From here on the data are of this type: fp32 is the bucket's. Returns how many values became
  /// infinite or NaN though what they were made from was finite: in a cast to 16 bit by rounding,
  /// in one back to fp32 since they were cast.
  std::int64_t cast(DType type, std::span<float> bucket);
  /// Batched PowerSGD: the elements of a square, zeros behind those of the bucket.
  void pad(DType type, std::span<float> bucket);
  /// The bucket's elements again.
  void unpad(DType type, std::span<float> bucket);

 private:
  std::int64_t narrow(DType type, std::span<float> bucket);
  std::int64_t widen(std::span<float> bucket);

  bool apart_ = false;
  Numbers own_;
  std::int64_t not_finite_ = 0;  ///< of the data when they were cast to 16 bit
};

}  // namespace ddpsim
