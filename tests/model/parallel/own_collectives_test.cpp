// Collectives that the network itself sends: of synchronised batch norms, of a loss that gathers.
#include <algorithm>

#include <catch2/catch.hpp>

#include "model/parallel/check_for_ranks.hpp"
#include "tests/model/flat_step.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/model/workload/timed.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;

namespace {

constexpr Bytes row{516};

/// A gather behind the first layer's forward pass, a sum in front of the rest of its backward pass.
Workload with_own() {
  Workload workload = two_layers();
  workload.collectives = {{OwnCollective::Kind::all_gather, row, false, 0, 0},
                          {OwnCollective::Kind::all_reduce, row, true, 1, 0}};
  return workload;
}

std::vector<std::uint32_t> own_of(const FlatStep& schedule) {
  std::vector<std::uint32_t> own;
  for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i)
    if (is_collective(schedule.tasks[i].operation) &&
        schedule.work_of(schedule.tasks[i]).message == Message::own)
      own.push_back(i);
  return own;
}

}  // namespace

TEST_CASE("every strategy sends the network's own collectives, and none alone does",
          "[model][own_collectives]") {
  const StepWorks works = works_of(with_own(), two_ranks());
  for (const Strategy strategy :
       {Strategy::none, Strategy::naive, Strategy::flat, Strategy::overlap, Strategy::bucketed}) {
    CAPTURE(name_of(strategy));
    Training training = training_of(strategy);
    training.micro_batches = 3;
    training.no_sync = true;  // of gradients alone
    const FlatStep schedule = flat_step(works, training);
    const std::vector<std::uint32_t> own = own_of(schedule);
    REQUIRE(own.size() == 3 * 2);
    CHECK(schedule.tasks[own[0]].operation == Operation::all_gather);
    CHECK(schedule.tasks[own[1]].operation == Operation::all_reduce);
    CHECK(schedule.tasks[own[0]].stream == StepStream::communication);
    CHECK(schedule.work_of(schedule.tasks[own[0]]).payload == row);
  }
  Cluster alone = two_ranks();
  alone.ranks_per_node = 1;
  CHECK(own_of(flat_step(works_of(with_own(), alone), training_of(Strategy::none))).empty());
}

TEST_CASE("a collective of the network's own stands where it is sent, and what follows waits",
          "[model][own_collectives]") {
  const FlatStep schedule =
      flat_step(works_of(with_own(), two_ranks()), training_of(Strategy::none));
  const std::uint32_t gather = own_of(schedule).front();
  const FlatTask& before = schedule.tasks[gather - 1];
  CHECK(before.operation == Operation::forward);
  CHECK(before.layer == 0);
  const auto waits = schedule.waits_for(schedule.tasks[gather]);
  CHECK(std::vector(waits.begin(), waits.end()) == std::vector{gather - 1});
  const FlatTask& wait = schedule.tasks[gather + 1];
  CHECK(wait.operation == Operation::wait);
  CHECK(wait.stream == StepStream::compute);
  const auto after = schedule.waits_for(wait);
  CHECK(std::vector(after.begin(), after.end()) == std::vector{gather});
  CHECK(schedule.tasks[gather + 2].layer == 1);
  CHECK(schedule.tasks[gather].purpose == program::Purpose::network);
}

TEST_CASE("the network's own collectives are simulated only", "[model][own_collectives]") {
  const Training training = training_of(Strategy::bucketed);
  const program::Job job = build_job(works_of(with_own(), two_ranks()), training);
  CHECK_THROWS_WITH(check_for_ranks(job, training, with_own()), Catch::Contains("simulated only"));
}
