#pragma once

#include <utility>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Times from begin to end.
using Interval = std::pair<Duration, Duration>;

/// A sum that stops at the farthest time there is.
constexpr Duration added(Duration a, Duration b) {
  constexpr Duration farthest{std::int64_t{8'000'000'000'000'000'000}};
  return b > Duration::zero() && a > farthest - b ? farthest : a + b;
}

/// What some intervals cover together.
class Coverage {
 public:
  explicit Coverage(std::vector<Interval> intervals);

  /// Sorted, and without overlap.
  const std::vector<Interval>& intervals() const { return merged_; }
  /// How much of the time from `begin` to `end` is covered.
  Duration within(Duration begin, Duration end) const { return until(end) - until(begin); }
  Duration length() const { return before_.back(); }

 private:
  Duration until(Duration time) const;

  std::vector<Interval> merged_;
  std::vector<Duration> before_{Duration{}};  ///< covered before each interval, and in the end
};

}  // namespace ddpsim
