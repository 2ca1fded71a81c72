#pragma once

#include <compare>
#include <cstdint>

namespace ddpsim {

/// C[m x n] += A[m x k] B[k x n], `batch` of them independent.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;

  /// Multiplications and additions.
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(batch);
  }
  auto operator<=>(const Gemm&) const = default;
};

}  // namespace ddpsim
