#include "sim/predict/run_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "model/program/joined_jobs.hpp"
#include "sim/engine/price.hpp"
#include "sim/predict/predict.hpp"
#include "sim/predict/simulated_ranks.hpp"

namespace ddpsim {
namespace {

constexpr std::chrono::hours longest_run{30 * 24};

/// Times are counted in picoseconds, in 64 bits, and tasks lie in memory.
void check_extent(const StepModel& model, const ConsecutiveSteps& steps) {
  const std::size_t ranks = simulated_ranks(model.costs, steps.kinds.front().job()).size();
  std::size_t tasks = 0;
  double seconds = 0;
  for (std::size_t i = 0; i < steps.sequence.size(); ++i) {
    const Step& kind = steps.kinds[static_cast<std::size_t>(steps.sequence[i])];
    tasks += ranks * kind.job().programs.front().tasks.size();
    seconds += in_seconds(kind.metrics.working());
    if (tasks <= most_joined_tasks && seconds <= in_seconds(longest_run)) continue;
    const std::string what = tasks > most_joined_tasks
                                 ? fmt::format("more than {} tasks", most_joined_tasks)
                                 : fmt::format("more than {} days", longest_run.count() / 24);
    const std::string instead =
        i == 0 ? std::string("leave --run-ahead out") : fmt::format("take --steps {} or fewer", i);
    throw std::invalid_argument(fmt::format("--run-ahead: {} steps of {} are {} as one: {}",
                                            steps.sequence.size(), name_of(kind.training.strategy),
                                            what, instead));
  }
}

}  // namespace

Duration RunAhead::total() const {
  return std::accumulate(periods.begin(), periods.end(), Duration::zero());
}

Duration RunAhead::waited() const {
  return std::accumulate(waits.begin(), waits.end(), Duration::zero(),
                         [](Duration sum, const HostWait& wait) { return sum + wait.time; });
}

RunAhead run_ahead(const StepModel& model, const ConsecutiveSteps& steps) {
  if (model.costs.synchronous)
    throw std::invalid_argument(
        "--run-ahead: here the host computes the kernels itself, so it cannot run ahead of them");
  for (const Step& kind : steps.kinds)  // it follows one program alone
    if (kind.job().programs.size() > 1)
      throw std::invalid_argument(
          "--run-ahead: with ZeRO's hooks ranks have different work, which is simulated a step at "
          "a "
          "time: leave it out");
  check_extent(model, steps);
  std::vector<const program::Job*> kinds;
  for (const Step& kind : steps.kinds) kinds.push_back(&kind.job());
  const program::JoinedJobs joined = program::join(kinds, steps.sequence, DdpAverages::samples);
  const JobTimeline timeline =
      simulate(joined.job, price(model.costs, joined.job, {}, joined.begins));
  const program::Program& program = joined.job.programs.front();

  RunAhead run;
  run.periods.reserve(joined.begins.size());
  Instant end{};
  for (std::size_t step = 0; step < joined.begins.size(); ++step) {
    const std::size_t last =
        step + 1 < joined.begins.size() ? joined.begins[step + 1] : program.tasks.size();
    const Instant before = end;
    for (const auto& times : timeline.classes)
      for (std::size_t i = joined.begins[step]; i < last; ++i) end = std::max(end, times[i].end);
    run.periods.push_back(end - before);
  }
  const RankOfJob typical(joined.job, timeline, steps.kinds.front().ranks.front());
  for (const program::JoinedJobs::TimerRead& read : joined.timer_reads) {
    const bool on_host = program.tasks[read.task - 1].stream == 0;
    const TaskTimes& before = typical.times[read.task - 1];
    const Instant free = on_host ? before.end : before.enqueued;
    run.waits.push_back({read.step, typical.times[read.task].issued - free});
  }
  return run;
}

}  // namespace ddpsim
