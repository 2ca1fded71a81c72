#pragma once

#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/link/gloo/connection.hpp"

namespace ddpsim {

/// All-reduces on the communication thread, one after the other, from the start of a step until a
/// rank says, in their last value, that it has computed (RunOptions::background).
class BackgroundLoad {
 public:
  /// All outlive this object, and it outlives what `begin` hands to the communication thread.
  BackgroundLoad(Connection& connection, std::span<float> values, Duration pause)
      : connection_(connection), values_(values), pause_(pause) {}

  void begin();
  /// This rank has computed.
  void computed() { computed_ = true; }

  /// When this rank reached each background all-reduce.
  std::vector<Instant> arrivals() const;
  /// Writes the figures of the background into `run`. `last`: when the last rank reached each
  /// all-reduce.
  void report(std::span<const Instant> last, Instant computed_at, RankRun& run) const;

 private:
  Connection& connection_;
  std::span<float> values_;
  Duration pause_;  ///< before each of them
  std::atomic<bool> computed_ = false;
  std::vector<std::pair<Instant, Instant>> spans_;  ///< arrival, end
};

}  // namespace ddpsim
