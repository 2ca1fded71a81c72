#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/execute/memory.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// One run of a job on one rank.
struct Running {
  const program::Job& job;
  const program::Program& program;  ///< this rank's
  const RunOptions& options;
  const Memory& memory;
  std::vector<TaskTimes>& times;  ///< [task]

  const program::Action& action_of(std::uint32_t task) const {
    return job.deed_of(program.tasks[task]).action;
  }
  /// Is it a collective or a message?
  bool communicates(std::uint32_t task) const {
    return program::communicator_of(action_of(task)) != nobody;
  }
};

/// The streams of a job beside the host's own thread: in which order what stands on them runs, and
/// when it ran. What is beside the programs (Job::beside) is one of them.
///
/// To implementers. The host thread makes every call. A task that is handed over begins once its
/// stream has come to it and the tasks that it waits for have ended; collectives of one
/// communicator begin in the order in which they were handed over. A call may throw what went wrong
/// in a task, whenever that was.
class Streams {
 public:
  virtual ~Streams() = default;

  /// Why a job cannot have streams, communicators or a program beside as it has them; empty: it
  /// can. The job has been checked.
  virtual std::string refusal(const program::Job& job) const = 0;
  /// The host's thread computes what stands on its stream itself. Else that is handed over too.
  virtual bool host_computes() const = 0;

  /// A run begins, of which nothing is under way yet. It outlives `finish` and `abandon`.
  virtual void begin(const Running& running) = 0;
  /// All ranks have started together: what is beside the programs begins.
  virtual void start() = 0;
  /// A round of the program begins, the first one is 0.
  virtual void begin_round(int round) = 0;
  virtual void end_round() {}
  /// The host is about to come to a task; it may be held up here, lest it is too far ahead.
  virtual void enter(std::uint32_t task) { static_cast<void>(task); }
  virtual void leave() {}
  /// Hands a task over. `call` does it: on a thread of the stream's when its turn has come, or now,
  /// by enqueueing what a device's stream does in its turn.
  virtual void submit(std::uint32_t task, std::function<void()> call) = 0;
  /// Blocks until a task of this round has ended, if it was handed over.
  virtual void wait(std::uint32_t task) = 0;
  /// The host has come to the end of its program. Blocks until everything has ended, also what is
  /// beside; then `times` has start and end of all tasks that were handed over. A collective
  /// "starts" when this rank is there. Returns when the program had ended.
  virtual Instant finish() = 0;
  /// After an error: returns once nothing of the run needs this object or the memory any longer.
  virtual void abandon() = 0;

  /// When this rank reached each of the collectives beside the programs, as far as `report` asks
  /// for them; empty: there were none.
  virtual std::vector<Instant> arrivals_beside() const = 0;
  /// Writes the figures of what was beside into `run`. `last`: when the last rank was there.
  virtual void report_beside(std::span<const Instant> last, RankRun& run) const = 0;
};

}  // namespace ddpsim::execute
