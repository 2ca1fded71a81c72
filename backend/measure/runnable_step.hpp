#pragma once

#include <functional>
#include <optional>

#include "backend/backend.hpp"
#include "model/program/job.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Makes the job of a step, whose deed t is what task t of the schedule does.
using JobOf = std::function<program::Job(const Schedule&)>;

/// A step as a backend runs it: as its job, or, where the backend runs schedules, as its schedule.
class RunnableStep {
 public:
  /// `job_of` is asked for a job only where the backend runs jobs.
  RunnableStep(const Backend& backend, Schedule schedule, const JobOf& job_of);

  const Schedule& schedule() const { return schedule_; }
  /// Of what is run.
  std::uint64_t fingerprint() const { return fingerprint_; }
  /// Times are of the schedule's tasks either way; of one that this rank leaves out, the instant at
  /// which it could have begun it. `options.pause_before` is a task of the schedule.
  RankRun run(Backend& backend, const RunOptions& options = {}) const;

 private:
  Schedule schedule_;
  std::optional<program::Job> job_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace ddpsim
