#include "sim/tune/round_cap.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "model/parallel/training.hpp"

namespace ddpsim {
namespace {

constexpr int most_decimals = 6;
constexpr int roughness_of_decimal = 100;  // more than that of all digits

/// Fewer digits are rounder, zeros at the end left out; a five at the end, 25 and 75 rounder still.
int roughness(std::int64_t value) {
  while (value > 0 && value % 10 == 0) value /= 10;
  const int digits = static_cast<int>(fmt::format("{}", value).size());
  return 4 * digits - (value == 25 || value == 75 ? 3 : value % 10 == 5 ? 2 : 0);
}

}  // namespace

RoundCap round_cap(Bytes low, Bytes high) {
  if (low <= default_bucket_cap && default_bucket_cap <= high) return {"25", default_bucket_cap, 0};
  std::int64_t scale = 1;
  for (int decimals = 0; decimals <= most_decimals; ++decimals, scale *= 10) {
    // value / scale MiB, truncated to bytes, from low to high
    const auto bytes_of = [&](std::int64_t value) {
      return Bytes{static_cast<std::int64_t>(static_cast<double>(value) /
                                             static_cast<double>(scale) * 1024 * 1024)};
    };
    const auto from = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(low.count) / static_cast<double>(MiB.count) *
                  static_cast<double>(scale)));
    std::int64_t best = 0;
    for (std::int64_t value = std::max<std::int64_t>(from, 1);
         bytes_of(value) <= high && value < from + 2000; ++value)
      if (bytes_of(value) >= low && (best == 0 || roughness(value) < roughness(best))) best = value;
    if (best == 0) continue;
    return {
        fmt::format("{:.{}f}", static_cast<double>(best) / static_cast<double>(scale), decimals),
        bytes_of(best), decimals * roughness_of_decimal + roughness(best)};
  }
  // Exact: a whole number of bytes over a power of two.
  return {fmt::format("{} / 1048576", low.count), low, (most_decimals + 1) * roughness_of_decimal};
}

}  // namespace ddpsim
