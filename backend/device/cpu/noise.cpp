#include "backend/device/cpu/noise.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace ddpsim {
namespace {

/// Uniform bits, a function of `value`. Source: Steele, Lea, Flood, OOPSLA 2014 (SplitMix64).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t noise_stream(std::uint64_t seed, int rank, int micro_batch) {
  std::uint64_t stream = mixed(seed);
  for (const int part : {rank, micro_batch})
    stream = mixed(stream + static_cast<std::uint64_t>(part));
  return stream;
}

/// Two numbers at a time. Source: Box, Muller, Ann. Math. Statist. 29(2), 1958.
void add_noise(std::span<float> values, double deviation, std::uint64_t stream) {
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const std::uint64_t bits = mixed(stream + i);
    const double first = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;  // (0, 1)
    const double angle = 2 * std::numbers::pi * static_cast<double>(bits & 0xffffffffU) * 0x1p-32;
    const double radius = deviation * std::sqrt(-2 * std::log(first));
    values[i] += static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values.size()) values[i + 1] += static_cast<float>(radius * std::sin(angle));
  }
}

}  // namespace ddpsim
