#include "tools/study/drawn_steps.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/predict/planned_step.hpp"
#include "sim/predict/rank_draws.hpp"
#include "sim/tune/parallel.hpp"

namespace ddpsim {
namespace {

RankDraws draws_for(const Scenario& scenario, const CostModel& costs) {
  const CalibratedCluster& cluster = scenario.cluster;
  const RankSpread spread = rank_spread(cluster, scenario.workload.step_spread);
  if (spread.changing == 0)
    throw InputError(
        "--seeds draws how the ranks' computing times change from step to step, and nothing says "
        "that they do: write cluster.jitter, such as --set cluster.jitter=1%");
  try {
    return RankDraws(spread, cluster.ranks(), costs.exceptions);
  } catch (const std::invalid_argument& problem) {
    throw InputError(fmt::format("--seeds: {}", problem.what()));
  }
}

/// The first is that of strategies under which all ranks keep all.
void add_without_communication(const Comparison& run, std::vector<PlannedStep>& planned,
                               std::vector<std::size_t>& none_of) {
  const StepWorks& works = run.priced.model.works;
  Training plain = run.scenario.training;
  plain.strategy = Strategy::none;
  planned.push_back(plan_step(works, plain));
  for (const Step& each : run.compared) {
    const Training without = each.training.compared_with();
    none_of.push_back(0);
    if (without.updates_part == plain.updates_part && without.passes_cast == plain.passes_cast)
      continue;
    none_of.back() = planned.size();
    planned.push_back(plan_step(works, without));
  }
}

}  // namespace

std::vector<DrawnSteps> drawn_steps(const Comparison& run, int count,
                                    const std::function<void(int done)>& watch) {
  if (count < 1 || count > most_seeds)
    throw InputError(
        fmt::format("--seeds: expected a whole number from 1 to {}, got {}", most_seeds, count));
  const StepModel& model = run.priced.model;
  const RankDraws draws = draws_for(run.scenario, model.costs);
  // The steps without communication, of which `none_of` says which one a step is compared with, and
  // behind them the steps.
  std::vector<PlannedStep> planned;
  std::vector<std::size_t> none_of;
  add_without_communication(run, planned, none_of);
  const std::size_t first = planned.size();
  for (const Step& each : run.compared) planned.push_back(plan_step(model.works, each.training));
  const double least_ms = in_ms(model.costs.least_step);
  // [planned][seed] in ms
  std::vector<std::vector<double>> working(planned.size(), std::vector<double>(at(count)));
  std::vector<CostModel> of_thread(at(allowed_cores()), model.costs);
  std::atomic<int> done{0};
  parallel_for(at(count), allowed_cores(), [&](int thread, std::size_t step) {
    const DrawnPace pace = draws.pace(step + 1);
    for (std::size_t s = 0; s < planned.size(); ++s)
      working[s][step] = in_ms(working_length(of_thread[at(thread)], planned[s], pace));
    ++done;
    if (thread == 0 && watch) watch(done);
  });
  std::vector<DrawnSteps> all;
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    DrawnSteps& drawn = all.emplace_back();
    const std::vector<double>&steps = working[first + s], &without = working[none_of[s]];
    for (std::size_t i = 0; i < at(count); ++i) {
      drawn.step_ms.push_back(std::max(steps[i], least_ms));
      drawn.exposed_ms.push_back(steps[i] - without[i]);
    }
  }
  return all;
}

}  // namespace ddpsim
