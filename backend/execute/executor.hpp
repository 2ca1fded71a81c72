#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "backend/backend.hpp"
#include "backend/execute/device.hpp"
#include "backend/execute/link.hpp"
#include "backend/execute/memory.hpp"
#include "backend/execute/streams.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// Runs jobs on one rank. All ranks run the same ones in the same order.
class Executor {
 public:
  /// All must outlive this object.
  Executor(Memory& memory, Device& device, Link& link, Streams& streams)
      : memory_(memory), device_(device), link_(link), streams_(streams) {}

  /// Runs this rank's program of the job, which `ranks` ranks run; returns when everything of this
  /// rank has ended. Times are those of the program's tasks. Throws std::invalid_argument, one
  /// line, before anything is allocated or runs, for a job that is wrong (program::check), that is
  /// for other ranks, or that has a task which cannot be done (refusal).
  RankRun run(const program::Job& job, int ranks, const RunOptions& options = {});
  /// Why the job, which has been checked, cannot be run, in one line that names the first task that
  /// cannot be done; empty: it can.
  std::string refusal(const program::Job& job) const;

 private:
  Memory& memory_;
  Device& device_;
  Link& link_;
  Streams& streams_;
  std::set<std::uint64_t> checked_;  ///< fingerprints of jobs that can be run
};

}  // namespace ddpsim::execute
