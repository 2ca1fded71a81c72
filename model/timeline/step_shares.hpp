#pragma once

#include <algorithm>
#include <array>

#include "model/timeline/metrics.hpp"

namespace ddpsim {

/// First start and last end of the tasks of one pass of one micro-batch.
struct Window {
  Instant from = Instant::max();
  Instant to = Instant::min();

  void cover(const TaskTimes& at) {
    from = std::min(from, at.start);
    to = std::max(to, at.end);
  }
  bool seen() const { return from <= to; }
  Duration length() const { return seen() ? to - from : Duration::zero(); }
};

/// How much of a critical path each bound has.
class BoundShares {
 public:
  void add(Bound bound, Duration length) { shares_[static_cast<std::size_t>(bound)] += length; }
  /// A collective's piece: latency first, and transfer behind it.
  void add_collective(Duration length, const Timeline::Detail& detail) {
    const Duration latency = std::min(length, detail.latency - detail.filling);
    add(Bound::latency, latency);
    add(Bound::bandwidth, length - latency);
  }
  /// A kernel's piece: as long as it takes by itself, and what collectives make it longer.
  void add_kernel(Duration length, const Timeline::Detail& detail) {
    const Duration computed =
        detail.alone > Duration::zero() ? std::min(length, detail.alone) : length;
    add(Bound::compute, computed);
    add(Bound::interference, length - computed);
  }
  Bound largest() const {
    return static_cast<Bound>(std::max_element(shares_.begin(), shares_.end()) - shares_.begin());
  }

 private:
  std::array<Duration, 5> shares_{};  // [Bound] but for input
};

}  // namespace ddpsim
