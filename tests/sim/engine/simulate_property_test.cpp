// What holds of every timeline, over random schedules.
#include <algorithm>
#include <array>

#include <catch2/catch.hpp>

#include "sim/engine/simulate.hpp"
#include "tests/sim/engine/random_schedules.hpp"
#include "tests/sim/engine/slow_job_solver.hpp"
#include "tests/sim/predict/fixtures.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;

namespace {

constexpr int random_rounds = 300;

/// Shapes in turn: 1 to 5 ranks, kernels on the device or on the host, with interference or
/// without.
Shape shape_of(int round) {
  Shape shape;
  shape.ranks = 1 + round % 5;
  shape.synchronous = round / 5 % 3 == 0;
  shape.interference = round / 15 % 2 == 0;
  return shape;
}

/// Calls `check(scripts, timeline)` for every round.
template <typename Check>
void for_random_schedules(std::uint64_t seed, Check&& check) {
  Dice dice(seed);
  for (int round = 0; round < random_rounds; ++round) {
    CAPTURE(seed, round);
    const std::vector<Script> scripts = random_schedules(dice, shape_of(round));
    check(scripts, simulate(scripts));
  }
}

bool is_host(const FlatTask& task) {
  return task.stream == StepStream::host;
}

/// When the host is free again after a task.
Instant released(const FlatTask& task, const TaskTimes& at) {
  return is_host(task) ? at.end : at.enqueued;
}

}  // namespace

TEST_CASE("nothing begins before what it waits for", "[sim][simulate]") {
  for_random_schedules(1, [](const auto& scripts, const Timeline& timeline) {
    for (std::size_t r = 0; r < scripts.size(); ++r) {
      for (std::size_t i = 0; i < scripts[r].schedule.tasks.size(); ++i) {
        const FlatTask& task = scripts[r].schedule.tasks[i];
        const TaskTimes& at = timeline.ranks[r][i];
        for (const std::uint32_t earlier : scripts[r].schedule.waits_for(task)) {
          REQUIRE(at.start >= timeline.ranks[r][earlier].end);
          if (is_host(task)) REQUIRE(at.issued >= timeline.ranks[r][earlier].end);
        }
      }
    }
  });
}

TEST_CASE("nothing begins before its launch or ends before its last one", "[sim][simulate]") {
  for_random_schedules(2, [](const auto& scripts, const Timeline& timeline) {
    for (std::size_t r = 0; r < scripts.size(); ++r) {
      for (std::size_t i = 0; i < scripts[r].schedule.tasks.size(); ++i) {
        const FlatTask& task = scripts[r].schedule.tasks[i];
        const TaskTimes& at = timeline.ranks[r][i];
        const WorkCost& cost = scripts[r].cost_of(task);
        const int launches = scripts[r].schedule.work_of(task).launches;
        REQUIRE(at.enqueued >= at.issued + cost.host);
        REQUIRE(at.end >= at.start + cost.work);
        if (task.stream == StepStream::communication) REQUIRE(at.start >= at.enqueued);
        if (task.stream != StepStream::compute) continue;
        REQUIRE(at.start >= at.issued + cost.host / launches);
        REQUIRE(at.end >= at.enqueued + cost.last_launch);
      }
    }
  });
}

TEST_CASE("a stream runs one task at a time in the order of the schedule", "[sim][simulate]") {
  for_random_schedules(3, [](const auto& scripts, const Timeline& timeline) {
    for (std::size_t r = 0; r < scripts.size(); ++r) {
      std::array<Instant, 6> free{};  // [StepStream]
      Instant host_free{};
      for (std::size_t i = 0; i < scripts[r].schedule.tasks.size(); ++i) {
        const FlatTask& task = scripts[r].schedule.tasks[i];
        const TaskTimes& at = timeline.ranks[r][i];
        REQUIRE(at.issued >= host_free);
        host_free = released(task, at);
        Instant& stream_free = free[static_cast<std::size_t>(task.stream)];
        REQUIRE(at.start >= stream_free);
        REQUIRE(at.end >= at.start);
        stream_free = at.end;
      }
      REQUIRE(timeline.end >= host_free);
      for (const Instant each : free) REQUIRE(timeline.end >= each);
    }
  });
}

TEST_CASE("a collective begins when the last rank arrives and ends for all at once",
          "[sim][simulate]") {
  const auto collectives_of = [](const FlatStep& schedule) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < schedule.tasks.size(); ++i)
      if (schedule.tasks[i].stream == StepStream::communication) found.push_back(i);
    return found;
  };
  for_random_schedules(4, [&](const auto& scripts, const Timeline& timeline) {
    const std::size_t count = collectives_of(scripts[0].schedule).size();
    std::vector<Instant> arrived(count), free(count);
    for (std::size_t r = 0; r < scripts.size(); ++r) {
      const auto mine = collectives_of(scripts[r].schedule);
      for (std::size_t k = 0; k < count; ++k) {
        const TaskTimes& at = timeline.ranks[r][mine[k]];
        Instant ready = at.enqueued;
        if (k > 0) ready = std::max(ready, timeline.ranks[r][mine[k - 1]].end);
        for (const std::uint32_t earlier :
             scripts[r].schedule.waits_for(scripts[r].schedule.tasks[mine[k]]))
          ready = std::max(ready, timeline.ranks[r][earlier].end);
        arrived[k] = std::max(arrived[k], ready);
        const TaskTimes& first = timeline.ranks[0][collectives_of(scripts[0].schedule)[k]];
        REQUIRE(at.start == first.start);
        REQUIRE(at.end == first.end);
      }
    }
    for (std::size_t k = 0; k < count; ++k)
      REQUIRE(timeline.ranks[0][collectives_of(scripts[0].schedule)[k]].start == arrived[k]);
  });
}

TEST_CASE("a second run gives the same timeline", "[sim][simulate]") {
  for_random_schedules(5, [](const auto& scripts, const Timeline& timeline) {
    REQUIRE(same(simulate(scripts), timeline));
  });
}

TEST_CASE("a step is at least as long as the work of any stream", "[sim][simulate]") {
  for_random_schedules(6, [](const auto& scripts, const Timeline& timeline) {
    for (const Script& script : scripts) {
      Duration host{}, compute{}, communication{};
      for (const FlatTask& task : script.schedule.tasks) {
        const WorkCost& cost = script.cost_of(task);
        host += cost.host + (is_host(task) ? cost.work : Duration::zero());
        (task.stream == StepStream::communication ? communication : compute) += cost.work;
      }
      REQUIRE(length(timeline) >= std::max({host, compute, communication}));
    }
  });
}

namespace {

/// As a job, by the solver that acts out each rank's contract.
Timeline slow_solve(const std::vector<Script>& scripts) {
  const ScriptedJob scripted(scripts);
  JobTimeline timeline;
  timeline.classes = SlowJobSolver(scripted.job, scripted.costs).solve();
  REQUIRE(timeline.classes.size() == scripts.size());
  for (const std::vector<TaskTimes>& times : timeline.classes) {
    timeline.class_of.push_back(static_cast<std::uint32_t>(timeline.class_of.size()));
    for (const TaskTimes& at : times) timeline.end = std::max(timeline.end, at.end);
  }
  return scripted.by_rank(timeline);
}

}  // namespace

TEST_CASE("without interference the engine and a slow solver agree to the tick",
          "[sim][simulate][oracle]") {
  Dice dice(7);
  for (int round = 0; round < random_rounds; ++round) {
    Shape shape = shape_of(round);
    shape.interference = false;
    CAPTURE(round);
    const std::vector<Script> scripts = random_schedules(dice, shape);
    REQUIRE(same(simulate(scripts), slow_solve(scripts)));
  }
}

namespace {

/// Does every task happen within `margin` of the slow solver's moment?
void check_against_slow_solver(const std::vector<Script>& scripts, Duration margin) {
  const Timeline fast = simulate(scripts), slow = slow_solve(scripts);
  const auto apart = [](Instant a, Instant b) { return a > b ? a - b : b - a; };
  for (std::size_t r = 0; r < scripts.size(); ++r) {
    for (std::size_t i = 0; i < scripts[r].schedule.tasks.size(); ++i) {
      const TaskTimes &one = fast.ranks[r][i], &other = slow.ranks[r][i];
      REQUIRE(apart(one.issued, other.issued) <= margin);
      REQUIRE(apart(one.enqueued, other.enqueued) <= margin);
      REQUIRE(apart(one.start, other.start) <= margin);
      REQUIRE(apart(one.end, other.end) <= margin);
    }
  }
}

}  // namespace

TEST_CASE("with interference they agree to a few picoseconds", "[sim][simulate][oracle]") {
  // The engine rounds what is left of a piece of work, and when it ends, at every change of rate:
  // half a tick each, of which factors up to 3 make one and a half. Works are of microseconds.
  Dice dice(8);
  for (int round = 0; round < random_rounds; ++round) {
    Shape shape = shape_of(round);
    shape.interference = true;
    CAPTURE(round);
    check_against_slow_solver(random_schedules(dice, shape), Duration{25});
  }
}

TEST_CASE("where collectives are handed over they agree to the tick", "[sim][simulate][oracle]") {
  Dice dice(10);
  for (int round = 0; round < random_rounds; ++round) {
    Shape shape = shape_of(round);
    shape.interference = false;
    shape.handover = true;
    CAPTURE(round);
    const std::vector<Script> scripts = random_schedules(dice, shape);
    REQUIRE(same(simulate(scripts), slow_solve(scripts)));
  }
}

TEST_CASE("R17, R37: with several collectives under way they agree to a few picoseconds",
          "[sim][simulate][oracle]") {
  // Sharing makes factors up to 6 times as large, and the errors with them.
  Dice dice(9);
  for (int round = 0; round < 2 * random_rounds; ++round) {
    Shape shape = shape_of(round);
    shape.communicators = 1 + round % 3;
    shape.collectives_at_once = 1 + round / 3 % 2;
    CAPTURE(round);
    check_against_slow_solver(random_schedules(dice, shape), Duration{150});
  }
}
