#pragma once

#include <vector>

namespace ddpsim {

/// The mean of the largest of `draws` independent draws from the standard normal distribution.
double expected_largest(int draws);

/// What this share of the values is at or below, between two of them on the straight line; 0 of no
/// values.
double quantile(std::vector<double> values, double share);

}  // namespace ddpsim
