#include "backend/measure/runnable_step.hpp"

#include <utility>

#include "model/base/index.hpp"
#include "model/program/fingerprint.hpp"
#include "model/timeline/schedule_times.hpp"

namespace ddpsim {
namespace {

/// The task of the program that does what a task of the schedule does, or the next one.
std::uint32_t task_in_program(const Schedule& schedule, const program::Program& program,
                              std::uint32_t task) {
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t)
    if (const std::uint32_t deed = program.tasks[t].deed;
        deed >= task && deed < schedule.tasks.size())
      return t;
  return 0;
}

}  // namespace

RunnableStep::RunnableStep(Schedule schedule, const JobOf& job_of)
    : schedule_(std::move(schedule)),
      job_(job_of(schedule_)),
      fingerprint_(program::fingerprint(job_)) {}

RankRun RunnableStep::run(Backend& backend, const RunOptions& options) const {
  const std::uint16_t kind = job_.program_of.at(at(backend.rank()));
  const program::Program& program = job_.programs.at(kind);
  RunOptions of_program = options;
  of_program.pause_before = task_in_program(schedule_, program, options.pause_before);
  RankRun run = backend.run(job_, of_program);
  run.times = times_of(schedule_, program, run.times);
  return run;
}

}  // namespace ddpsim
