#pragma once

#include "model/scenario.hpp"
#include "model/step.hpp"
#include "model/step_costs.hpp"

namespace ddpsim {

/// One step of `training` at these prices, of ranks that are all alike; or, where a calibration says
/// that ranks are not (StepCosts::slowest_rank), of a typical one (rank 0) and the slowest.
Step predict(const StepCosts& costs, const Training& training);

/// What a scenario's steps cost, scaled to its measured `times` where it gives some.
StepCosts price(const Scenario& scenario);

}  // namespace ddpsim
