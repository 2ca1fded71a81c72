#include "tools/report/chart.hpp"

#include <catch2/catch.hpp>

#include "sim/engine/simulate.hpp"
#include "tests/sim/predict/fixtures.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

/// Of one step: a kernel of 10 ms, then one of `operation`, as long.
std::string chart_with(Operation operation) {
  fixtures::Script script;
  script.add(fixtures::kernel(10ms));
  script.add(fixtures::kernel(10ms));
  script.schedule.tasks.back().operation = operation;
  Step step;
  step.timeline = simulate(script.schedule, script.costs);
  step.schedule = std::move(script.schedule);
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

}  // namespace
}  // namespace ddpsim
