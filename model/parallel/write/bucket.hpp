#pragma once

#include <cstdint>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Gradients reduced together, as a strategy plans them.
struct Bucket {
  std::vector<std::int32_t> parameters{};  ///< in the order they lie in it
  Bytes size{};
  bool in_place = false;  ///< it is the gradient of its one parameter, not memory of its own
  bool sparse = false;    ///< one sparse gradient, whose rows are gathered
  bool delayed = false;   ///< waited for by nobody (training.delay_all_reduce)
  /// Gradients that backward computes lie in it from the start, and are never copied there.
  bool views = false;
  /// Gradients begin at multiples of `align` elements, and the bucket ends at one of `multiple`.
  std::int64_t align = 1, multiple = 1;
  bool has_hook = false;  ///< a comm hook works on it, in place of an all-reduce
};

}  // namespace ddpsim
