#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// How long one processor takes for the same work, over and over.
struct ProcessorPace {
  int processor = 0;                 ///< its number in the system
  Duration low{}, median{}, high{};  ///< 10th, 50th and 90th percentile
};

/// Whether this machine computes at one pace, which steal time (steal.hpp) does not tell: a virtual
/// machine's processor may share a physical core with another's, and what it computes then takes up
/// to twice as long, for seconds at a time. Other programs at work look the same. A machine that is
/// slow throughout does not show.
struct Pace {
  std::vector<ProcessorPace> processors;

  /// Above this, of the 90th percentile over the 10th, or of the slowest processor over the
  /// fastest, timings depend on when and where they were made. Runs that came out well had at most
  /// 1.15, one whose steps were mispredicted by 16 % had 1.7 (docs/accuracy.md).
  static constexpr double most = 1.25;

  Duration low() const;   ///< the least 10th percentile
  Duration high() const;  ///< the largest 90th percentile
  bool changes() const;   ///< of one processor or more
  bool differs() const;   ///< between processors
  bool even() const { return !changes() && !differs(); }
};

/// Keeps every processor that this process may use at work for so long, each with the same sequence
/// of a hundred thousand multiplications and additions, each of which waits for the one before.
/// `watch` hears, a few times a second, which part of the time has passed, from 0 to 1.
Pace measure_pace(std::chrono::milliseconds time, const std::function<void(double)>& watch = {});

}  // namespace ddpsim
