#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/base/quantity.hpp"

namespace ddpsim {

inline constexpr double standstill = std::numeric_limits<double>::infinity();

/// Work in progress, at a slowdown that may change.
struct Activity {
  Duration left{};
  double slowdown = 1;
  Instant since{};
  std::uint32_t generation = 0;  ///< grows with every change: an end foreseen before it is void

  void begin(Duration work, Instant now) {
    left = work;
    slowdown = 1;
    since = now;
    ++generation;
  }
  /// When the work ends if its slowdown stays as it is. Call only while the slowdown is finite.
  Instant end() const { return since + (slowdown == 1 ? left : scaled(left, slowdown)); }
  /// Changes the slowdown from now on. Under an infinite slowdown the work stands still.
  void change(double to, Instant now) {
    const Duration elapsed = now - since;
    left = std::max(Duration::zero(),
                    left - (slowdown == 1 ? elapsed : scaled(elapsed, 1 / slowdown)));
    slowdown = to;
    since = now;
    ++generation;
  }
};

}  // namespace ddpsim
