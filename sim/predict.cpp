#include "sim/predict.hpp"

#include <array>

#include "model/schedule_builder.hpp"
#include "sim/fit_times.hpp"
#include "sim/simulate.hpp"

namespace ddpsim {
namespace {

/// A typical rank, and the one all wait for.
Timeline simulate_with_slowest(const Schedule& typical, double factor) {
  std::array<Schedule, 2> ranks{typical, typical};
  for (Task& task : ranks[1].tasks)
    if (task.stream != Stream::communication) {
      task.work = scaled(task.work, factor);
      task.last_launch = scaled(task.last_launch, factor);
    }
  return simulate(ranks);
}

}  // namespace

Step predict(const StepCosts& costs, const Training& training) {
  Step step{training, build_schedule(costs, training), {}, {}};
  step.timeline = costs.slowest_rank > 1 && costs.ranks > 1
                      ? simulate_with_slowest(step.schedule, costs.slowest_rank)
                      : simulate(step.schedule);
  step.metrics = measure(step.schedule, step.timeline);
  return step;
}

StepCosts price(const Scenario& scenario) {
  StepCosts costs(scenario.workload, scenario.cluster, scenario.optimizer);
  fit_times(costs, scenario.training, scenario.times);
  return costs;
}

}  // namespace ddpsim
