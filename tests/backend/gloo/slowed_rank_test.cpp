// A rank that is made slower than it is (RunOptions::compute, RunOptions::pause).
#include <catch2/catch.hpp>

#include "backend/device_error.hpp"
#include "backend/measure/check_gradients.hpp"
#include "backend/measure/measure_step.hpp"
#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

/// Kernels that take so much of the processor, whatever else it does.
SmallJob busy_job() {
  SmallJob job(2);
  for (Layer& layer : job.workload.layers)
    for (std::vector<Kernel>* pass : {&layer.forward, &layer.backward})
      for (Kernel& kernel : *pass) {
        kernel.gemm.reset();
        kernel.traffic = {};
        kernel.time = Duration{500us};
      }
  return job;
}

/// The processor's time that a rank's forward pass took.
Duration forward_time(const Schedule& schedule, const std::vector<TaskTimes>& times) {
  Duration sum{};
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t)
    if (schedule.tasks[t].operation == Operation::forward) sum += times[t].end - times[t].start;
  return sum;
}

}  // namespace

TEST_CASE("a rank computes as many times as long as it is told to, and the same",
          "[backend][gradients]") {
  const SmallJob job = busy_job();
  const Schedule schedule = job.schedule(Strategy::bucketed);
  Timeline timeline;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const GradientReference reference =
                reference_of(rank, job, job.schedule(Strategy::none), 1);
            RunOptions options;
            options.by_processor = true;
            if (rank.rank() == 1) options.compute = 3;
            Timeline measured = job.measured(rank, schedule, options);
            const bool good = check_gradients(rank, job.workload, reference, {}).good();
            if (rank.rank() == 0) timeline = std::move(measured);
            return good ? 0 : 1;
          }) == 0);
  REQUIRE(timeline.ranks.size() == 2);
  const Duration alone = forward_time(schedule, timeline.ranks[0]),
                 slowed = forward_time(schedule, timeline.ranks[1]);
  CHECK(in_seconds(slowed) > 2.9 * in_seconds(alone));
  CHECK(in_seconds(slowed) < 3.3 * in_seconds(alone));
}

TEST_CASE("a rank pauses before the task it is told to, and not elsewhere",
          "[backend][gradients]") {
  const SmallJob job = busy_job();
  const Schedule schedule = job.schedule(Strategy::bucketed);
  const auto paused = static_cast<std::uint32_t>(
      std::ranges::find(schedule.tasks, Operation::backward, &Task::operation) -
      schedule.tasks.begin());
  REQUIRE(paused < schedule.tasks.size());
  const std::vector<program::Task> tasks = job.step(schedule).programs.front().tasks;
  const auto paused_task = static_cast<std::uint32_t>(
      std::ranges::find(tasks, paused, &program::Task::deed) - tasks.begin());
  Timeline timeline;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            RunOptions options;
            options.pause_before = paused_task;
            if (rank.rank() == 1) options.pause = 200ms;
            Timeline measured = job.measured(rank, schedule, options);
            if (rank.rank() == 0) timeline = std::move(measured);
            return 0;
          }) == 0);
  const TaskTimes& there = timeline.ranks[1][paused];
  CHECK(there.enqueued - there.issued >= 200ms);
  CHECK(there.start >= there.enqueued);
  const TaskTimes& elsewhere = timeline.ranks[0][paused];
  CHECK(elsewhere.enqueued == elsewhere.issued);
  // The collectives of both begin once the rank that pauses has come.
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t)
    if (schedule.tasks[t].operation == Operation::all_reduce)
      CHECK(timeline.ranks[0][t].start >= there.enqueued);
}

}  // namespace ddpsim
