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
Duration forward_time(const program::Job& step, const JobTimeline& timeline, std::size_t rank) {
  const RankOfJob of(step, timeline, rank);
  Duration sum{};
  for (std::size_t t = 0; t < of.times.size(); ++t)
    if (operation_of(step, of.program.tasks[t]) == Operation::forward)
      sum += of.times[t].end - of.times[t].start;
  return sum;
}

}  // namespace

TEST_CASE("a rank computes as many times as long as it is told to, and the same",
          "[backend][gradients]") {
  const SmallJob job = busy_job();
  const program::Job step = job.step(Strategy::bucketed);
  JobTimeline timeline;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const GradientReference reference =
                reference_of(rank, job, job.step(Strategy::none), 1);
            RunOptions options;
            options.by_processor = true;
            if (rank.rank() == 1) options.compute = 3;
            JobTimeline measured = measure_step(rank, step, options);
            const bool good = check_gradients(rank, job.workload, reference, {}).good();
            if (rank.rank() == 0) timeline = std::move(measured);
            return good ? 0 : 1;
          }) == 0);
  REQUIRE(timeline.classes.size() == 2);
  CHECK(timeline.measured);
  const Duration alone = forward_time(step, timeline, 0), slowed = forward_time(step, timeline, 1);
  CHECK(in_seconds(slowed) > 2.9 * in_seconds(alone));
  CHECK(in_seconds(slowed) < 3.3 * in_seconds(alone));
}

TEST_CASE("a rank pauses before the task it is told to, and not elsewhere",
          "[backend][gradients]") {
  const SmallJob job = busy_job();
  const program::Job step = job.step(Strategy::bucketed);
  const std::vector<program::Task>& tasks = step.programs.front().tasks;
  const auto is = [&](Operation operation) {
    return [&step, operation](const program::Task& task) {
      return operation_of(step, task) == operation;
    };
  };
  const auto paused = static_cast<std::uint32_t>(
      std::ranges::find_if(tasks, is(Operation::backward)) - tasks.begin());
  REQUIRE(paused < tasks.size());
  JobTimeline timeline;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            RunOptions options;
            options.pause_before = paused;
            if (rank.rank() == 1) options.pause = 200ms;
            JobTimeline measured = measure_step(rank, step, options);
            if (rank.rank() == 0) timeline = std::move(measured);
            return 0;
          }) == 0);
  const TaskTimes& there = RankOfJob(step, timeline, 1).times[paused];
  CHECK(there.enqueued - there.issued >= 200ms);
  CHECK(there.start >= there.enqueued);
  const TaskTimes& elsewhere = RankOfJob(step, timeline, 0).times[paused];
  CHECK(elsewhere.enqueued == elsewhere.issued);
  // The collectives of both begin once the rank that pauses has come.
  for (std::size_t t = 0; t < tasks.size(); ++t)
    if (is(Operation::all_reduce)(tasks[t]))
      CHECK(RankOfJob(step, timeline, 0).times[t].start >= there.enqueued);
}

}  // namespace ddpsim
