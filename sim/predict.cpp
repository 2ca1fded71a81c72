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

void fit_times(StepCosts& costs, const Training& training, const MeasuredTimes& times) {
  if (!times.forward && !times.backward && !times.optimizer) return;
  Training alone = training;
  alone.strategy = Strategy::none;
  alone.micro_batches = 1;  // times are those of one pass
  for (int round = 0; round < rounds_of_fitting; ++round) {
    const StepMetrics now = predict(costs, alone).metrics;
    if (times.forward) scale_forward(costs, ratio(*times.forward, now.forward));
    if (times.backward) scale_backward(costs, ratio(*times.backward, now.backward));
    if (times.optimizer) scale_optimizer(costs, ratio(*times.optimizer, now.optimizer));
  }
}

StepCosts price(const Scenario& scenario) {
  StepCosts costs(scenario.workload, scenario.cluster, scenario.optimizer);
  fit_times(costs, scenario.training, scenario.times);
  return costs;
}

}  // namespace ddpsim
