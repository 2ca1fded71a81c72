#pragma once

namespace ddpsim {

/// The mean of the largest of `draws` independent draws from the standard normal distribution.
double expected_largest(int draws);

}  // namespace ddpsim
