#pragma once

#include <span>
#include <vector>

#include "backend/device/cuda/gpu_events.hpp"
#include "backend/execute/streams.hpp"

namespace ddpsim {

/// All-reduces beside a program (Job::beside) that the host thread has to feed to the GPU. Ranks
/// issue equally many, so they agree on when it is enough.
class GpuBeside {
 public:
  virtual ~GpuBeside() = default;

  /// A run begins; of a job without a program beside nothing comes of it.
  virtual void begin(const execute::Running& running, const GpuEvents& events) = 0;
  /// Issues more of them, if there is room and every rank still computes. A rank that has computed
  /// says so in the next agreement; all make that one, and it is the last.
  virtual void feed(bool computed) = 0;
  /// The ranks have agreed to issue no more of them.
  virtual bool stopped() const = 0;
  /// How many were issued. The last one has the last event.
  virtual int issued() const = 0;

  /// When this rank issued the first one.
  virtual Instant begun() const = 0;
  /// Puts what became of them into `run`, given when the last rank had begun.
  virtual void report(Instant begun, RankRun& run) const = 0;
};

}  // namespace ddpsim
