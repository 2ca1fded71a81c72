#pragma once

#include <functional>

#include "backend/backend.hpp"
#include "model/program/job.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Makes the job of a step, whose deed t is what task t of the schedule does.
using JobOf = std::function<program::Job(const Schedule&)>;

/// A step as a backend runs it, as its job, with the schedule whose tasks its times are told by.
class RunnableStep {
 public:
  RunnableStep(Schedule schedule, const JobOf& job_of);

  const Schedule& schedule() const { return schedule_; }
  /// Of what is run.
  std::uint64_t fingerprint() const { return fingerprint_; }
  /// Times are of the schedule's tasks; of one that this rank leaves out, the instant at
  /// which it could have begun it. `options.pause_before` is a task of the schedule.
  RankRun run(Backend& backend, const RunOptions& options = {}) const;

 private:
  Schedule schedule_;
  program::Job job_;
  std::uint64_t fingerprint_;
};

}  // namespace ddpsim
