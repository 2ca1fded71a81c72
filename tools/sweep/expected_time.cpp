#include "tools/sweep/expected_time.hpp"

#include <cmath>

#include <fmt/format.h>

namespace ddpsim {

Seconds expected_rest(std::size_t done, std::size_t left, Seconds passed) {
  constexpr Seconds least{1};
  if (done == 0 || passed < least) return Seconds{0};
  return passed * (static_cast<double>(left) / static_cast<double>(done));
}

std::string about(Seconds time) {
  constexpr double minute = 60, hour = 3600;
  const double seconds = time.count();
  if (seconds < 1.5 * minute) return fmt::format("about {:.0f} s", std::ceil(seconds / 10) * 10);
  if (seconds < 1.5 * hour) return fmt::format("about {:.0f} min", seconds / minute);
  return fmt::format("about {:.1f} h", seconds / hour);
}

}  // namespace ddpsim
