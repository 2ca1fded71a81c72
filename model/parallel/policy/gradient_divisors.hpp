#pragma once

#include <cstdint>

namespace ddpsim {

/// What kernels of PyTorch's sharded strategies divide gradients by before their sum over the ranks
/// and behind it, so that neither overflows fp16 (rule F45).
struct GradientDivisors {
  double before = 1, behind = 1;
};
constexpr GradientDivisors gradient_divisors(std::int32_t ranks) {
  std::int32_t before = 1;
  while (ranks % before == 0 && ranks > before * before) before *= 2;
  return {static_cast<double>(before), static_cast<double>(ranks) / before};
}

}  // namespace ddpsim
