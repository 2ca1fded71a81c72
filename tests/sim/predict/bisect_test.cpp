#include "sim/predict/bisect.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace ddpsim {
namespace {

/// Forty halvings, each with a question.
template <typename Excess>
double plain_bisection(double low, double high, Excess&& excess) {
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    (excess(middle) > Duration::zero() ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

Duration rounded(double picoseconds) {
  return Duration{static_cast<std::int64_t>(std::llround(picoseconds))};
}

TEST_CASE("the answer is that of forty bisections, to the last bit", "[sim][bisect]") {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> share(0, 1);
  for (int i = 0; i < 3000; ++i) {
    const double low = -share(random), high = 5 * share(random) + 0.1;
    const double turn = low + (high - low) * (1.4 * share(random) - 0.2);  // at times outside
    const double slope = std::exp(20 * share(random)), knee = low + (high - low) * share(random);
    const int kind = i % 5;
    const auto excess = [&](double x) {
      switch (kind) {
        case 0:  // straight
          return rounded(slope * (x - turn));
        case 1:  // a knee somewhere, as where something else becomes critical
          return rounded(slope * (x - turn) + (x > knee ? 50 * slope * (x - knee) : 0) -
                         (turn > knee ? 50 * slope * (turn - knee) : 0));
        case 2:  // a power
          return rounded(slope * (std::exp(3 * x) - std::exp(3 * turn)));
        case 3:  // level, then steep
          return rounded(x < knee ? std::min(0.0, slope * (knee - turn)) : slope * (x - turn));
        default:  // in steps
          return rounded(1000 * std::floor(20 * (x - turn)));
      }
    };
    CAPTURE(i, low, high, turn, slope, knee);
    REQUIRE(bisect(low, high, excess) == plain_bisection(low, high, excess));
  }
}

TEST_CASE("where the excess is nearly straight, few questions find where it turns",
          "[sim][bisect]") {
  int questions = 0;
  // A step of half a second that grows by a power: 1e12 ps each.
  const auto excess = [&](double x) {
    ++questions;
    return rounded(0.2e12 * std::exp(x) - 0.53e12);
  };
  CHECK(std::exp(bisect(-5, 5, excess)) == Approx(2.65).epsilon(1e-11));
  CHECK(questions < 25);
}

TEST_CASE("what never turns is met at the nearer end", "[sim][bisect]") {
  CHECK(bisect(-1, 3, [](double x) { return rounded(1e6 * (x + 2)); }) == Approx(-1).margin(1e-9));
  CHECK(bisect(-1, 3, [](double x) { return rounded(1e6 * (x - 4)); }) == Approx(3).margin(1e-9));
}

}  // namespace
}  // namespace ddpsim
