// That ranks execute the step they are given, and all of them the same; and that what
// model/program/variants.hpp makes of a step is executed to its last task.

#include <algorithm>
#include <functional>

#include <catch2/catch.hpp>

#include "backend/device_error.hpp"
#include "backend/measure/measure_step.hpp"
#include "model/program/fingerprint.hpp"
#include "model/program/variants.hpp"
#include "tests/backend/fakes.hpp"
#include "tests/model/flat_step.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

program::Task& first_with(program::Job& job, Operation operation) {
  std::vector<program::Task>& tasks = job.programs.front().tasks;
  const auto found = std::ranges::find_if(
      tasks, [&](const program::Task& task) { return operation_of(job, task) == operation; });
  REQUIRE(found != tasks.end());
  return *found;
}

/// The first copy into a bucket divides by two.
void halve_first_copy(program::Job& job) {
  program::Task& copy = first_with(job, Operation::copy_in);
  program::Deed deed = job.deed_of(copy);
  std::get<program::Scale>(deed.action).factor = 0.5F;
  copy.deed = static_cast<std::uint32_t>(job.known_deeds() + job.own.deeds.size());
  job.own.deeds.push_back(deed);
}

/// A bucketed step that takes 10 ms at least: in front of the last layer a user's hook keeps two
/// threads busy so long.
program::Job slow_step(const SmallJob& job) {
  Training training;
  training.bucket_cap = Bytes{8 << 10};
  training.first_bucket_cap = Bytes{2 << 10};
  UserHook& hook = training.hooks.emplace_back();
  hook.kind = UserHookKind::chunks;
  hook.chunks = {4, 2, {}, 20ms};
  hook.layers = {1};
  hook.outputs = {Bytes{64}};
  return job.step(training);
}

/// Has this rank a time for every task, each done once the host had come to it?
bool all_have_times(const program::Job& step, const std::vector<TaskTimes>& times) {
  if (times.size() != step.programs.front().tasks.size()) return false;
  Instant host{};
  for (const TaskTimes& at : times) {
    if (at.issued < host || at.enqueued < at.issued) return false;
    if (at.end <= Instant{} || at.end < at.start || at.end < at.issued) return false;
    host = at.issued;
  }
  return true;
}

}  // namespace

TEST_CASE("every rank reports the fingerprint of the job it was given",
          "[backend][measure][fingerprint]") {
  const std::string backend = GENERATE("threads", "gloo");
  const SmallJob job(2);
  for (const Strategy strategy : all_strategies) {
    CAPTURE(backend, name_of(strategy));
    const program::Job once = job.step(strategy), repeats = repeated(once, 2);
    const std::uint64_t expected = program::fingerprint(once);
    CHECK(run_job(job_of(2, backend), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            if (rank.run(once).fingerprint != expected) return 5;
            return rank.run(repeats).fingerprint == program::fingerprint(repeats) ? 0 : 6;
          }) == 0);
    CHECK(program::fingerprint(repeats) != expected);
  }
  const SmallJob on_gpus = gpu_job(2);
  const program::Job step = on_gpus.step(Strategy::bucketed);
  CHECK(on_fakes(
            2, {GpuLink::Mode::shared}, std::chrono::seconds{5},
            [](int) { return std::make_unique<FakeGpu>(); },
            [&](Backend& rank) {
              rank.load(on_gpus.workload, on_gpus.optimizer);
              return rank.run(step).fingerprint == program::fingerprint(step) ? 0 : 5;
            }) == 0);
}

TEST_CASE("a rank whose job differs in one task is found, on all ranks",
          "[backend][measure][fingerprint]") {
  const std::string backend = GENERATE("threads", "gloo");
  const SmallJob job(3);
  const program::Job step = job.step(Strategy::bucketed);
  const std::vector<std::function<void(program::Job&)>> changes{
      halve_first_copy,
      [](program::Job& mine) {
        first_with(mine, Operation::hook).work = first_with(mine, Operation::wait).work;
      },
      [](program::Job& mine) {
        mine.works[first_with(mine, Operation::hook).work].handed_over = true;
      },
  };
  for (std::size_t change = 0; change < changes.size(); ++change)
    for (const int odd : {0, 2}) {
      CAPTURE(backend, change, odd);
      program::Job other = step;
      changes[change](other);
      const std::string usual = program::fingerprint_text(program::fingerprint(step));
      const std::string its = program::fingerprint_text(program::fingerprint(other));
      REQUIRE(usual != its);
      // Rank 0's is the one that all are compared with.
      const std::string expected =
          "the ranks disagree on what they execute: the job of rank 0 is " +
          (odd == 0 ? its + ", rank 1 has " + usual : usual + ", rank 2 has " + its);
      CHECK(run_job(job_of(3, backend), [&](Backend& rank) {
              rank.load(job.workload, job.optimizer);
              measure_step(rank, step);
              try {
                measure_step(rank, rank.rank() == odd ? other : step);
              } catch (const DeviceError& problem) {
                return problem.what() == expected ? 0 : 6;
              }
              return 5;
            }) == 0);
    }
}

TEST_CASE("a step without communication sends nothing, and its ranks meet where they waited",
          "[backend][measure][variants]") {
  const std::string backend = GENERATE("threads", "gloo");
  const SmallJob job(2);
  for (const Strategy strategy : replicating_strategies) {
    CAPTURE(backend, name_of(strategy));
    const program::Job step = job.step(strategy), quiet = without_communication(step);
    const auto count = [](const program::Job& of, Operation operation) {
      return std::ranges::count(flat(of).tasks, operation, &FlatTask::operation);
    };
    CHECK(count(quiet, Operation::all_reduce) == 0);
    CHECK(count(quiet, Operation::meet) == count(step, Operation::wait));
    CHECK(run_job(job_of(2, backend), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            std::optional<Sent> sent;
            const JobTimeline timeline = measure_step(rank, quiet, {}, &sent);
            if (sent != Sent{}) return 5;
            for (const auto& times : timeline.classes)
              if (!all_have_times(quiet, times)) return 6;
            // Nobody goes on before all have done what comes before the meeting.
            const std::vector<program::Task>& tasks = quiet.programs.front().tasks;
            for (std::size_t i = 1; i < tasks.size(); ++i)
              if (operation_of(quiet, tasks[i]) == Operation::meet)
                for (const auto& one : timeline.classes)
                  for (const auto& other : timeline.classes)
                    if (one[i].end < other[i - 1].end) return 7;
            return 0;
          }) == 0);
  }
}

TEST_CASE("of a repeated step each task has the time of the last round",
          "[backend][measure][variants]") {
  const std::string backend = GENERATE("threads", "gloo");
  CAPTURE(backend);
  const SmallJob job(2);
  for (const bool communicates : {false, true}) {
    const program::Job once = communicates ? slow_step(job) : without_communication(slow_step(job));
    const program::Job step = repeated(once, 4);
    CHECK(step.programs.front().tasks.size() == once.programs.front().tasks.size());
    CHECK(run_job(job_of(2, backend), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const RankRun run = rank.run(step);
            if (!all_have_times(step, run.times)) return 5;
            // Three rounds of 10 ms came before.
            if (run.times.front().issued < Instant{30ms}) return 6;
            if (run.computed < 40ms) return 7;
            return measure_step(rank, step).classes.size() == 2 ? 0 : 8;
          }) == 0);
  }
}

TEST_CASE("a step with all-reduces beside it has the times of its own tasks",
          "[backend][measure][variants]") {
  const std::string backend = GENERATE("threads", "gloo");
  CAPTURE(backend);
  const SmallJob job(2);
  const program::Job quiet = without_communication(slow_step(job));
  for (const Duration pause : {Duration::zero(), Duration{1ms}}) {
    const program::Job step = repeated(with_background(quiet, 4 * KiB, pause), 20);
    // Without those in which ranks meet.
    CHECK(step.programs.front().tasks.size() < quiet.programs.front().tasks.size());
    CHECK(run_job(job_of(2, backend), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const RankRun run = rank.run(step);
            if (!all_have_times(step, run.times)) return 5;
            if (run.fingerprint != program::fingerprint(step)) return 6;
            return run.background_ended > 0 && run.background_begun < run.computed ? 0 : 7;
          }) == 0);
  }
}

}  // namespace ddpsim
