#include "model/base/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace ddpsim {

double expected_largest(int draws) {
  // The mean of a variable with distribution F is the integral of 1 - F above zero less the
  // integral of F below zero; both by midpoints.
  constexpr double end = 9, width = 0.01;
  double sum = 0;
  for (double x = width / 2; x < end; x += width) {
    const double below = std::erfc(x / std::sqrt(2.0)) / 2;
    sum += 1 - std::pow(1 - below, draws) - std::pow(below, draws);
  }
  return sum * width;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

}  // namespace ddpsim
