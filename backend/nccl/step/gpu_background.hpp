#pragma once

#include <vector>

#include "backend/backend.hpp"
#include "backend/job/communicator.hpp"
#include "backend/nccl/collectives/gpu_collectives.hpp"
#include "backend/nccl/step/gpu_step_clock.hpp"

namespace ddpsim {

/// All-reduces beside computation (RunOptions::background). Ranks must issue equally many, so they
/// agree on each batch: one more as long as all of them compute. Two batches are on the way, for
/// the stream never to run dry.
class GpuBackground {
 public:
  /// All-reduces of `size` beside a step of `tasks` tasks; none if zero. All must outlive this.
  GpuBackground(Gpu& gpu, GpuCollectives& collectives, Communicator& communicator,
                const GpuStepClock& clock, Bytes size, std::uint32_t tasks);

  /// Issues up to two more batches, if there is room and every rank still computes. A rank that has
  /// computed says so in the next agreement; all make that one, and it is the last.
  void feed(bool computed);
  /// The ranks have agreed to issue no more of them.
  bool stopped() const { return stopped_; }

  int issued() const { return issued_; }
  /// The event of the last one. Call only once some have been issued.
  int last_event() const;
  /// When this rank issued the first one.
  Instant begun() const;
  /// Puts what became of them into `run`, given when the last rank had begun.
  void report(Instant begun, Instant computed_at, RankRun& run) const;

 private:
  int batch() const;

  Gpu& gpu_;
  GpuCollectives& collectives_;
  Communicator& communicator_;
  const GpuStepClock& clock_;
  Bytes size_;
  std::uint32_t tasks_;
  int issued_ = 0;
  std::vector<Instant> enqueued_;  ///< [issued] when the host had made its first call
  bool stopped_;
};

}  // namespace ddpsim
