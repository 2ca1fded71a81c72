#pragma once

#include <algorithm>
#include <cmath>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// The x in [low, high] at which `excess(x)`, a Duration that does not fall as x grows, turns
/// positive; the nearer end if it never does. It is what 40 bisections find, to the last bit, where
/// `excess` does not fall; but each of their questions is a whole prediction, and here about half
/// as many are asked. Near the place where it turns, `excess` is almost straight. So the line
/// through both ends of what is known points there, and a point a little nearer to the middle than
/// that is asked, so that in turn both ends move. A bisection outside of what is known then needs
/// no question.
/// Source: Oliveira & Takahashi, ACM Trans. Math. Softw. 47(1), 2020 (interpolate, truncate,
/// project).
template <typename Excess>
double bisect(double low, double high, Excess&& excess) {
  constexpr int bisections = 40;
  // Half a picosecond less, so that it is never zero and the line always crosses between the ends.
  const auto ask = [&](double x) { return static_cast<double>(excess(x).count()) - 0.5; };
  double below = low, above = high, at_below = ask(low), at_above = ask(high);
  const bool crosses = at_below < 0 && at_above > 0;
  const double range = high - low, narrow = std::ldexp(range, -bisections);
  // How far from the middle a point may lie: in the worst case five questions more than bisections.
  double slack = 32 * range;
  for (; crosses && above - below > narrow; slack /= 2) {
    const double width = above - below, middle = below + width / 2;
    const double line = below + width * at_below / (at_below - at_above);
    const double toward = line < middle ? 1 : -1;
    const double nearer = 0.2 * width * width / range;
    double x = nearer < std::abs(middle - line) ? line + toward * nearer : middle;
    const double farthest = std::max(0.0, (slack - width) / 2);
    if (std::abs(x - middle) > farthest) x = middle - toward * farthest;
    if (x <= below || x >= above) break;
    const double value = ask(x);
    (value > 0 ? above : below) = x;
    (value > 0 ? at_above : at_below) = value;
  }
  for (int i = 0; i < bisections; ++i) {
    const double middle = 0.5 * (low + high);
    const bool too_much = crosses && middle > below && middle < above ? ask(middle) > 0
                          : crosses                                   ? middle >= above
                                                                      : at_below > 0;
    (too_much ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace ddpsim
