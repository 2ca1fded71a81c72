#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>

namespace ddpsim {

/// numpy.random.RandomState(seed).randint(1'000'000'000), again and again: what PowerSGD seeds
/// torch with. Source: numpy/random/src/distributions/distributions.c, masked rejection of 32 bits.
class TorchSeeds {
 public:
  explicit TorchSeeds(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t next();

 private:
  std::mt19937 engine_;
};

/// torch.manual_seed(seed), then torch.randn in fp32 on the CPU, call by call: the same numbers up
/// to the rounding of logarithm and sine. Source: pytorch
/// aten/src/ATen/native/cpu/DistributionTemplates.h normal_fill,
/// aten/src/ATen/core/DistributionsHelper.h normal_distribution.
class TorchRandom {
 public:
  explicit TorchRandom(std::uint32_t seed) : engine_(seed) {}

  /// One tensor of torch.randn.
  void randn(std::span<float> values);

 private:
  void fill16(std::span<float> uniform);
  double normal();

  std::mt19937 engine_;
  std::optional<double> second_;  ///< of the pair that `normal` makes
};

}  // namespace ddpsim
