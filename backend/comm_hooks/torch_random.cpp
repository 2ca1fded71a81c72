#include "backend/comm_hooks/torch_random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ddpsim {

std::uint32_t TorchSeeds::next() {
  constexpr std::uint32_t last = 999'999'999, mask = (1U << 30) - 1;
  for (;;) {
    const auto value = static_cast<std::uint32_t>(engine_()) & mask;
    if (value <= last) return value;
  }
}

/// Fewer than 16 numbers come one by one, in double precision; 16 and more in blocks of 16, of
/// which the last reaches back over what is already there.
void TorchRandom::randn(std::span<float> values) {
  constexpr std::size_t block = 16;
  if (values.size() < block) {
    for (float& value : values) value = static_cast<float>(normal());
    return;
  }
  const auto draw = [&](std::span<float> into) {
    for (float& value : into) value = static_cast<float>(engine_() & ((1U << 24) - 1)) * 0x1p-24F;
  };
  draw(values);
  std::size_t i = 0;
  for (; i + block <= values.size(); i += block) fill16(values.subspan(i, block));
  if (i == values.size()) return;
  draw(values.last(block));
  fill16(values.last(block));
}

/// Box and Muller: the first eight with the second eight.
void TorchRandom::fill16(std::span<float> uniform) {
  for (std::size_t i = 0; i < 8; ++i) {
    const float first = 1 - uniform[i], second = uniform[i + 8];
    const float radius = std::sqrt(-2 * std::log(first));
    const float angle = 2 * std::numbers::pi_v<float> * second;
    uniform[i] = radius * std::cos(angle);
    uniform[i + 8] = radius * std::sin(angle);
  }
}

double TorchRandom::normal() {
  if (second_) {
    const double value = *second_;
    second_.reset();
    return value;
  }
  const auto uniform = [&] {
    const std::uint64_t high = engine_(), low = engine_();
    return static_cast<double>((high << 32 | low) & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
  };
  const double first = uniform(), second = uniform();
  const double radius = std::sqrt(-2 * std::log1p(-second));
  const double angle = 2 * std::numbers::pi * first;
  second_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

}  // namespace ddpsim
