// Jobs of no strategy, over groups, stages and streams: the engine against a solver that acts out
// its contract for every rank by itself.
#include <algorithm>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/program/text.hpp"
#include "tests/model/program/random_job.hpp"
#include "tests/sim/engine/random_schedules.hpp"
#include "tests/sim/engine/slow_job_solver.hpp"

namespace ddpsim {
namespace {

using fixtures::Dice;

bool communicates(const program::Action& action) {
  return std::holds_alternative<program::Collective>(action) ||
         std::holds_alternative<program::Send>(action) ||
         std::holds_alternative<program::Receive>(action);
}

/// A job with a piece of work for each task, on streams of every kind.
program::Job drawn_job(std::uint64_t seed, Dice& dice) {
  drawn::Draw draw(seed);
  program::Job job = program::random_job(draw);
  for (std::size_t s = 1; s < job.streams.size(); ++s) {
    job.streams[s].beside = dice.one_in(2);
    job.streams[s].halts = job.streams[s].beside && dice.one_in(2);
  }
  job.works.clear();
  for (program::Program& program : job.programs)
    for (program::Task& task : program.tasks) {
      task.work = static_cast<std::uint32_t>(job.works.size());
      job.works.emplace_back();
      if (task.stream == 0 && communicates(job.deed_of(task).action)) task.stream = 1;
    }
  return job;
}

/// What is beside or communicates takes some time: what of two things begins that could at once
/// depends on what has ended then.
WorkCost drawn_cost(Dice& dice, bool takes_time, bool interference) {
  WorkCost cost;
  cost.host = dice.time(5);
  cost.first_launch = dice.one_in(2) ? cost.host : cost.host / 2;
  cost.work = takes_time ? dice.time(19) + Duration{1'000'000} : dice.time(20);
  cost.last_launch = dice.one_in(2) ? cost.work : Duration::zero();
  if (dice.one_in(3)) cost.take_up = dice.time(5);
  cost.latency = cost.work;  // nothing of it shares a link
  if (!interference) return cost;
  cost.latency = dice.time(10);
  cost.memory_fraction = static_cast<float>(dice.between(0, 4)) / 4;
  cost.beside = {dice.slowdown(), dice.slowdown(), dice.slowdown(), 0};
  return cost;
}

JobCosts drawn_costs(const program::Job& job, Dice& dice, bool interference) {
  JobCosts costs;
  for (int kinds = dice.between(1, 3); kinds > 0; --kinds) {
    Costs& kind = costs.kinds.emplace_back();
    for (const program::Program& program : job.programs)
      for (const program::Task& task : program.tasks)
        kind.works.push_back(drawn_cost(
            dice, job.streams[task.stream].beside || communicates(job.deed_of(task).action),
            interference));
  }
  const auto last = static_cast<int>(costs.kinds.size()) - 1;
  for (std::size_t rank = 0; rank < job.ranks(); ++rank)
    costs.of_rank.push_back(static_cast<std::uint16_t>(dice.between(0, last)));
  return costs;
}

/// The first task whose times are further from the solver's than `margin`; "" if there is none.
std::string difference(const program::Job& job, const JobCosts& costs, Duration margin) {
  const auto slow = fixtures::SlowJobSolver(job, costs).solve();
  JobTimeline fast;
  try {
    fast = simulate(job, costs);
  } catch (const std::invalid_argument& error) {
    return slow.empty() ? "" : error.what();
  }
  if (slow.empty()) return "the solver says that the ranks wait for ever";
  for (std::size_t rank = 0; rank < slow.size(); ++rank)
    for (std::size_t task = 0; task < slow[rank].size(); ++task) {
      const TaskTimes& at = fast.classes[fast.class_of[rank]][task];
      const TaskTimes& as = slow[rank][task];
      const auto far = [&](Instant one, Instant other) {
        return std::max(one, other) - std::min(one, other) > margin;
      };
      if (far(at.issued, as.issued) || far(at.enqueued, as.enqueued) || far(at.start, as.start) ||
          far(at.end, as.end))
        return fmt::format("rank {}, task {}: {} to {} ps, not {} to {}", rank, task,
                           at.start.time_since_epoch().count(), at.end.time_since_epoch().count(),
                           as.start.time_since_epoch().count(), as.end.time_since_epoch().count());
    }
  return {};
}

}  // namespace

TEST_CASE("jobs over groups, stages and streams take the times of the slow solver, to the tick",
          "[sim][simulate][properties]") {
  Dice dice(79);
  int stuck = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    program::Job job = drawn_job(seed, dice);
    for (program::Communicator& each : job.communicators) each.at_once = 1;
    const JobCosts costs = drawn_costs(job, dice, false);
    CAPTURE(seed, program::text_of(job));
    REQUIRE(difference(job, costs, Duration::zero()) == "");
    stuck += fixtures::SlowJobSolver(job, costs).solve().empty() ? 1 : 0;
  }
  CHECK(stuck > 5);
  CHECK(stuck < 60);
}

TEST_CASE("beside each other their kernels and collectives are as slow as the slow solver's",
          "[sim][simulate][properties]") {
  // The engine rounds by half a tick at every change of rate, which factors up to 6 of links that
  // are shared make larger.
  Dice dice(83);
  for (std::uint64_t seed = 1001; seed <= 1600; ++seed) {
    const program::Job job = drawn_job(seed, dice);
    const JobCosts costs = drawn_costs(job, dice, true);
    CAPTURE(seed, program::text_of(job));
    REQUIRE(difference(job, costs, Duration{150}) == "");
  }
}

}  // namespace ddpsim
