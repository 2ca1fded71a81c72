#include "sim/predict.hpp"

#include "model/schedule_builder.hpp"
#include "sim/fit_times.hpp"
#include "sim/simulate.hpp"

namespace ddpsim {
Step predict(const StepCosts& costs, const Training& training) {
  Step step{training, build_schedule(costs, training), {}, {}};
  step.timeline = simulate(step.schedule);
  step.metrics = measure(step.schedule, step.timeline);
  return step;
}

StepCosts price(const Scenario& scenario) {
  StepCosts costs(scenario.workload, scenario.cluster, scenario.optimizer);
  fit_times(costs, scenario.training, scenario.times);
  return costs;
}

}  // namespace ddpsim
