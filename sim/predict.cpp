#include "sim/predict.hpp"

#include "model/schedule_builder.hpp"
#include "sim/simulate.hpp"

namespace ddpsim {
namespace {

constexpr int rounds_of_fitting = 8;

double ratio(Duration measured, Duration predicted) {
  return predicted > Duration::zero() ? in_seconds(measured) / in_seconds(predicted) : 1;
}

}  // namespace

Prediction predict(const StepCosts& costs, const Training& training) {
  Prediction prediction{training, build_schedule(costs, training), {}, {}};
  prediction.timeline = simulate(prediction.schedule);
  prediction.metrics = measure(prediction.schedule, prediction.timeline);
  return prediction;
}

PassFactors fit_times(StepCosts& costs, const Training& training, const MeasuredTimes& times) {
  PassFactors all;
  if (!times.forward && !times.backward && !times.optimizer) return all;
  Training alone = training;
  alone.strategy = Strategy::none;
  alone.micro_batches = 1;  // times are those of one pass
  for (int round = 0; round < rounds_of_fitting; ++round) {
    const StepMetrics now = predict(costs, alone).metrics;
    PassFactors more;
    if (times.forward) more.forward = ratio(*times.forward, now.forward);
    if (times.backward) more.backward = ratio(*times.backward, now.backward);
    if (times.optimizer) more.optimizer = ratio(*times.optimizer, now.optimizer);
    scale(costs, more);
    all = {all.forward * more.forward, all.backward * more.backward, all.optimizer * more.optimizer};
  }
  return all;
}

StepCosts price(const Scenario& scenario) {
  StepCosts costs(scenario.workload, scenario.cluster, scenario.optimizer);
  fit_times(costs, scenario.training, scenario.times);
  return costs;
}

}  // namespace ddpsim
