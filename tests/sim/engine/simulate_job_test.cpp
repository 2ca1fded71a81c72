// Jobs in virtual time, over groups, peers and ranks that differ.
#include <catch2/catch.hpp>

#include "tests/sim/engine/random_schedules.hpp"
#include "tests/sim/predict/fixtures.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

using program::Collective;
using program::Job;

/// Ranks in rows and columns, as of sharded data parallelism: collectives of a row and of a column,
/// kernels between them, and one price of each piece for all.
class Grid {
 public:
  Job job;
  Costs costs;

  Grid(int rows, int columns) {
    job.streams = {{.name = "host"}, {.name = "compute"}};
    for (const char* name : {"gather", "reduce"}) job.streams.push_back({name, true});
    job.communicators.resize(2);
    for (int row = 0; row < rows; ++row) {
      auto& group = job.communicators[0].groups.emplace_back();
      for (int column = 0; column < columns; ++column) group.push_back(row * columns + column);
    }
    for (int column = 0; column < columns; ++column) {
      auto& group = job.communicators[1].groups.emplace_back();
      for (int row = 0; row < rows; ++row) group.push_back(row * columns + column);
    }
    job.program_of.assign(static_cast<std::size_t>(rows * columns), 0);
    job.programs.emplace_back();
    job.own.deeds.push_back({program::Compute{}});
    for (const auto communicator : {std::int16_t{0}, std::int16_t{1}})
      job.own.deeds.push_back({Collective{.communicator = communicator}});
  }

  /// `deed`: 0 a kernel, 1 a collective of the row, 2 of the column.
  std::uint32_t add(std::uint32_t deed, Duration work, std::vector<std::uint32_t> after = {},
                    Duration latency = {}) {
    program::Program& program = job.programs.back();
    program.after.insert(program.after.end(), after.begin(), after.end());
    program::Task task;
    task.deed = deed;
    task.work = static_cast<std::uint32_t>(job.works.size());
    task.stream = static_cast<std::uint8_t>(1 + deed);
    task.after_end = static_cast<std::uint32_t>(program.after.size());
    job.works.emplace_back();
    WorkCost& cost = costs.works.emplace_back();
    cost.host = cost.first_launch = 2us;
    cost.work = work;
    cost.latency = latency;
    if (deed > 0) cost.beside = {1.25F, 1.5F, 1.75F, 0};
    program.tasks.push_back(task);
    return static_cast<std::uint32_t>(program.tasks.size() - 1);
  }

  void add_random(Dice& dice, int count) {
    for (int left = count; left > 0; --left) {
      const int known = static_cast<int>(job.programs.back().tasks.size());
      std::vector<std::uint32_t> after;
      if (known > 0) after.push_back(static_cast<std::uint32_t>(dice.between(0, known - 1)));
      const Duration latency = dice.time(3);
      add(static_cast<std::uint32_t>(dice.between(0, 2)), dice.time(30) + 1us, after, latency);
    }
  }

  /// All ranks cost the same but those in `slow`, whose kernels take twice as long.
  JobCosts priced(const std::vector<std::size_t>& slow, bool told_apart) const {
    Costs slower = costs;
    for (const program::Task& task : job.programs.back().tasks)
      if (task.deed == 0) slower.works[task.work].work *= 2;
    const auto is_slow = [&](std::size_t rank) { return std::ranges::count(slow, rank) > 0; };
    JobCosts all{{costs, slower}, {}};
    if (told_apart) all.kinds.clear();
    for (std::size_t rank = 0; rank < job.ranks(); ++rank) {
      if (told_apart) all.kinds.push_back(is_slow(rank) ? slower : costs);
      all.of_rank.push_back(static_cast<std::uint16_t>(told_apart ? rank : is_slow(rank)));
    }
    return all;
  }
};

}  // namespace

TEST_CASE("ranks that do the same are simulated once, to the tick", "[sim][simulate]") {
  Dice dice(5);
  for (int round = 0; round < 120; ++round) {
    const int rows = dice.between(1, 4), columns = dice.between(1, 4);
    Grid grid(rows, columns);
    grid.add_random(dice, 25);
    std::vector<std::size_t> slow;
    for (int left = round % 3; left > 0; --left)
      slow.push_back(static_cast<std::size_t>(dice.between(0, rows * columns - 1)));
    CAPTURE(round, rows, columns, slow);
    const JobTimeline once = simulate(grid.job, grid.priced(slow, false)),
                      each = simulate(grid.job, grid.priced(slow, true));
    CHECK(each.classes.size() == grid.job.ranks());
    if (slow.empty()) CHECK(once.classes.size() == 1);
    for (std::size_t rank = 0; rank < grid.job.ranks(); ++rank) {
      const auto& folded = once.classes[once.class_of[rank]];
      const auto& alone = each.classes[each.class_of[rank]];
      for (std::size_t t = 0; t < folded.size(); ++t) {
        REQUIRE(folded[t].start == alone[t].start);
        REQUIRE(folded[t].end == alone[t].end);
      }
    }
  }
}

TEST_CASE("131072 ranks in rows of 8, of which 20 are slow, are few classes", "[sim][simulate]") {
  Dice dice(9);
  Grid grid(16384, 8);
  grid.add_random(dice, 60);
  std::vector<std::size_t> slow;
  for (std::size_t i = 0; i < 20; ++i) slow.push_back(8 * i);  // in 20 rows and one column
  const JobTimeline timeline = simulate(grid.job, grid.priced(slow, false));
  // Slow ones; those beside them in the rows; in their column; all others.
  CHECK(timeline.classes.size() == 4);
}

TEST_CASE("a group waits for its own ranks alone", "[sim][simulate]") {
  Grid grid(2, 2);
  const std::uint32_t kernel = grid.add(0, 100us), row = grid.add(1, 10us, {kernel});
  const JobTimeline timeline = simulate(grid.job, grid.priced({0}, false));
  const auto end = [&](std::size_t rank) {
    return timeline.classes[timeline.class_of[rank]][row].end - Instant{};
  };
  // The host enqueues the kernel in 2 us; rank 0 takes 200 us for it.
  CHECK(end(0) == 212us);
  CHECK(end(1) == 212us);
  CHECK(end(2) == 112us);
  CHECK(end(3) == 112us);
}

TEST_CASE("a send meets its receive, and stages wait for each other", "[sim][simulate]") {
  // Three stages, a kernel of 10 us in each; what is sent takes 3 us.
  Job job;
  job.streams = {{.name = "host"}, {.name = "compute"}, {"receive", true}, {"send", true}};
  job.communicators = {{"chain", 1, {{0, 1, 2}}}};
  job.program_of = {0, 1, 2};
  job.programs.resize(3);
  job.works.resize(2);
  Costs costs;
  costs.works.resize(2);
  costs.works[0].work = 10us;
  costs.works[1].work = 3us;
  job.own.deeds.push_back({program::Compute{}});
  const auto add = [&](std::size_t stage, program::Action action, std::uint32_t work,
                       std::vector<std::uint32_t> after) {
    program::Program& program = job.programs[stage];
    program.after.insert(program.after.end(), after.begin(), after.end());
    job.own.deeds.push_back({action});
    const bool sends = std::holds_alternative<program::Send>(action);
    program.tasks.push_back({.work = work,
                             .deed = static_cast<std::uint32_t>(job.own.deeds.size() - 1),
                             .after_end = static_cast<std::uint32_t>(program.after.size()),
                             .stream = static_cast<std::uint8_t>(1 + work + (sends ? 1U : 0))});
  };
  for (std::int16_t stage = 0; stage < 3; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    for (int batch = 0; batch < 2; ++batch) {
      const auto count = [&] { return static_cast<std::uint32_t>(job.programs[s].tasks.size()); };
      const auto earlier = static_cast<std::int16_t>(stage - 1),
                 later = static_cast<std::int16_t>(stage + 1);
      if (stage > 0) add(s, program::Receive{.communicator = 0, .peer = earlier}, 1, {});
      add(s, program::Compute{}, 0,
          stage > 0 ? std::vector{count() - 1} : std::vector<std::uint32_t>{});
      if (stage < 2) add(s, program::Send{.communicator = 0, .peer = later}, 1, {count() - 1});
    }
  }
  const JobTimeline timeline = simulate(job, {{costs}, {0, 0, 0}});
  CHECK(timeline.classes.size() == 3);
  // Batch 0: 10, 13, 23, 26, 36; batch 1 is 10 behind it everywhere.
  CHECK(timeline.end - Instant{} == 46us);
  const auto& last = timeline.classes[timeline.class_of[2]];
  CHECK(last[0].start - Instant{} == 23us);
  CHECK(last[1].end - Instant{} == 36us);
}

TEST_CASE("a kernel waits for the all-reduce before it on its stream", "[sim][simulate]") {
  for (const auto lanes : {std::uint8_t{1}, std::uint8_t{2}}) {
    CAPTURE(static_cast<int>(lanes));
    Grid grid(1, 2);
    grid.add(1, 10us);
    grid.add(0, 5us);
    for (program::Task& each : grid.job.programs[0].tasks) each.stream = 1;
    grid.job.streams[1].lanes = lanes;
    const JobTimeline timeline = simulate(grid.job, grid.priced({}, false));
    // The host enqueues each in 2 us. (The all-reduce slows the kernel beside it.)
    CHECK(timeline.classes[0][1].start - Instant{} == (lanes == 1 ? 12us : 4us));
  }
}

TEST_CASE("jobs that cannot be simulated are refused", "[sim][simulate]") {
  Grid grid(1, 2);
  grid.add(1, 10us);
  const JobCosts costs = grid.priced({}, false);
  const auto refused = [&](const Job& job) {
    CHECK_THROWS_AS(simulate(job, costs), std::invalid_argument);
  };
  Job job = grid.job;
  job.programs[0].rounds = 2;
  refused(job);
  job = grid.job;
  job.program_of = {};
  refused(job);
  job = grid.job;
  job.communicators[0].groups = {{0}};  // rank 1 is in none
  refused(job);
  job = grid.job;
  job.works.emplace_back();  // costs of another job
  refused(job);
  job = grid.job;
  job.programs[0].after = {0};  // itself
  job.programs[0].tasks[0].after_end = 1;
  refused(job);
  job = grid.job;
  job.programs.push_back({});  // never arrives
  job.program_of = {0, 1};
  refused(job);
}
