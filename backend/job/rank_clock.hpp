#pragma once

#include <vector>

#include "backend/job/communicator.hpp"
#include "model/base/quantity.hpp"

namespace ddpsim {

/// This rank's clock, and what it is on the other ranks'. All but `now` and `to_local` communicate.
class RankClock {
 public:
  explicit RankClock(Communicator& communicator);

  /// A monotonic clock that began when the ranks had connected.
  Instant now() const;

  /// Finds out how this rank's clock differs from rank 0's; the ranks of one host share one.
  /// Measured by ping-pong, half of the fastest round trip exact.
  void align();
  /// An instant of rank 0's clock as this rank's clock shows it.
  Instant to_local(Instant of_rank_0) const { return of_rank_0 + offset_; }

  /// Agrees on an instant with all ranks, `head_start` from now. Returns it as this rank's clock
  /// shows it.
  Instant agree_on_start(Duration head_start);

  /// The latest of every rank's k-th instant, as this rank's clock shows it. Throws DeviceError if
  /// the ranks give different numbers of them.
  std::vector<Instant> latest(std::vector<Instant> mine);

 private:
  void answer_all();
  void ask_rank_0();

  Communicator& communicator_;
  bool one_host_ = true;
  std::chrono::nanoseconds epoch_{};
  Duration offset_{};  ///< this rank's clock minus rank 0's
};

}  // namespace ddpsim
