#include "model/base/statistics.hpp"

#include <cmath>

#include <catch2/catch.hpp>

using namespace ddpsim;

TEST_CASE("the largest of several draws from a normal distribution", "[model][statistics]") {
  CHECK(expected_largest(1) == Approx(0).margin(1e-12));
  CHECK(expected_largest(2) == Approx(1 / std::sqrt(std::acos(-1.0))));
  CHECK(expected_largest(3) == Approx(3 / (2 * std::sqrt(std::acos(-1.0)))));
  // Harter, Expected values of normal order statistics (Biometrika 48, 1961).
  CHECK(expected_largest(10) == Approx(1.53875).epsilon(1e-5));
  CHECK(expected_largest(100) == Approx(2.50759).epsilon(1e-5));
}

TEST_CASE("a quantile lies between two values where none stands there", "[model][statistics]") {
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({4, 1, 2, 3}, 0.5) == 2.5);
  CHECK(quantile({1, 2, 3, 4, 5}, 0.9) == Approx(4.6));
  CHECK(quantile({7}, 0.99) == 7);
  CHECK(quantile({}, 0.5) == 0);
}
