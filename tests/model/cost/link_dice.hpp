#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

namespace ddpsim {

/// Draws links and clusters for properties that hold on any of them.
class LinkDice {
 public:
  explicit LinkDice(std::uint64_t seed) : engine_(seed) {}
  double share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  int whole(int least, int most) { return least + static_cast<int>(share() * (most - least + 1)); }
  /// As often between 1 and 10 as between 10 and 100.
  double spread(double least, double most) { return least * std::pow(most / least, share()); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(whole(0, static_cast<int>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

/// 100 Mbit/s to 3.2 Tbit/s, as GB/s.
inline double line_rate_of(LinkDice& dice) {
  return dice.spread(0.0125, 400);
}

/// DDPSIM_SEEDS=10 runs ten seeds, DDPSIM_SEED=7 that one.
inline std::vector<std::uint64_t> property_seeds() {
  if (const char* one = std::getenv("DDPSIM_SEED")) return {std::strtoull(one, nullptr, 10)};
  const char* many = std::getenv("DDPSIM_SEEDS");
  std::vector<std::uint64_t> seeds(many ? std::strtoull(many, nullptr, 10) : 1);
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = i + 1;
  return seeds;
}

}  // namespace ddpsim
