#include "tools/report/writers/chart.hpp"

#include <array>

#include <catch2/catch.hpp>

#include "tests/model/timeline/of_rows.hpp"
#include "tests/sim/predict/fixtures.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

Step step_of(const fixtures::Script& script, const fixtures::Timeline& timeline) {
  timelines::Times when;
  when.ranks = timeline.ranks;
  when.end = timeline.end;
  const timelines::OfRows of(script.schedule, when);
  Step step;
  step.planned = std::make_shared<const PlannedStep>(of.job);
  step.times = of.times;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) step.ranks.push_back(rank);
  return step;
}

/// The chart of one step: a kernel of 10 ms, then one of `operation`, as long.
std::string chart_with(Operation operation) {
  fixtures::Script script;
  script.add(fixtures::kernel(10ms));
  script.add(fixtures::kernel(10ms));
  script.schedule.tasks.back().operation = script.schedule.works.back().operation = operation;
  const Step step = step_of(script, fixtures::simulate(script));
  return timeline_chart({{"bucketed", &step}});
}

TEST_CASE("the chart's legend explains h where a row has one", "[tools][chart]") {
  const std::string half(36, 'F');
  const std::string with = chart_with(Operation::gradient_hook);
  CHECK_THAT(with, Catch::Contains("= all-reduce, h hook, . mostly idle\n") &&
                       Catch::Contains("compute       " + half + std::string(36, 'h') + "\n"));
  const std::string without = chart_with(Operation::optimizer);
  CHECK_THAT(without, Catch::Contains("= all-reduce, . mostly idle\n") &&
                          Catch::Contains("compute       " + half + std::string(36, 'O') + "\n"));
}

TEST_CASE("the chart shows how long rank 0 waits for the end of the step", "[tools][chart]") {
  // Rank 0 ends at 20 ms and the slowest rank at 40: a cell is 0.56 ms.
  fixtures::Script script;
  script.add(fixtures::kernel(10ms));
  script.add(fixtures::kernel(10ms));
  fixtures::Script slower = script;
  slower.costs = slowed_down(script.schedule.works, false, script.costs, 2);
  const Step step = step_of(script, fixtures::simulate(std::array{script, slower}));
  const std::string chart = timeline_chart({{"none", &step}});
  CHECK_THAT(
      chart,
      Catch::Contains("= all-reduce, - rank 0 waits for the end of the step, . mostly idle") &&
          Catch::Contains("compute       " + std::string(36, 'F')) &&
          Catch::Contains(std::string(35, '-') + "\n"));  // the cell between is of both
}

}  // namespace
}  // namespace ddpsim
