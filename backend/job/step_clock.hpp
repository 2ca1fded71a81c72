#pragma once

#include <vector>

#include "backend/job/rank_clock.hpp"
#include "model/timeline/task_times.hpp"

namespace ddpsim {

/// Counts the time of a step from the instant at which all ranks begin it.
class StepClock {
 public:
  /// `head_start`: between agreeing on an instant and that instant. It has to be long enough for
  /// the message to reach every rank.
  StepClock(Communicator& communicator, Duration head_start)
      : clock_(communicator), head_start_(head_start) {}

  Instant now() const { return Instant{clock_.now() - zero_}; }

  // The following functions communicate: all ranks must call them.
  void align() { clock_.align(); }
  Instant agree_on_start() { return clock_.agree_on_start(head_start_); }
  /// The latest of every rank's k-th instant; both count from the step's zero.
  std::vector<Instant> latest(std::vector<Instant> mine);

  /// Returns at an instant that agree_on_start gave, by looking at the clock all the time.
  void wait_until(Instant agreed) const {
    while (clock_.now() < agreed) {
    }
  }
  /// From this call on the agreed instant is zero.
  void begin_at(Instant agreed) { zero_ = agreed; }

 private:
  RankClock clock_;
  Duration head_start_;
  Instant zero_{};
};

}  // namespace ddpsim
