#pragma once

#include "model/metrics.hpp"
#include "model/scenario.hpp"
#include "model/schedule.hpp"
#include "model/step_costs.hpp"
#include "model/timeline.hpp"

namespace ddpsim {

/// A predicted step: what was to be done, when it happened, and its figures.
struct Prediction {
  Training training;
  Schedule schedule;
  Timeline timeline;
  StepMetrics metrics;
};

/// One step of `training` at these prices, of ranks that are all alike.
Prediction predict(const StepCosts& costs, const Training& training);

/// What a scenario's steps cost, scaled to its measured `times` where it gives some.
StepCosts price(const Scenario& scenario);

}  // namespace ddpsim
