#include "sim/predict.hpp"

#include "model/schedule_builder.hpp"
#include "sim/fit_times.hpp"
#include "sim/simulate.hpp"

namespace ddpsim {
Prediction predict(const StepCosts& costs, const Training& training) {
  Prediction prediction{training, build_schedule(costs, training), {}, {}};
  prediction.timeline = simulate(prediction.schedule);
  prediction.metrics = measure(prediction.schedule, prediction.timeline);
  return prediction;
}

StepCosts price(const Scenario& scenario) {
  StepCosts costs(scenario.workload, scenario.cluster, scenario.optimizer);
  fit_times(costs, scenario.training, scenario.times);
  return costs;
}

}  // namespace ddpsim
