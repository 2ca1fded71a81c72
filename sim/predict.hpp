#pragma once

#include "model/scenario.hpp"
#include "model/step.hpp"
#include "model/step_costs.hpp"

namespace ddpsim {

/// One step of `training` at these prices, of ranks that are all alike.
Step predict(const StepCosts& costs, const Training& training);

/// What a scenario's steps cost, scaled to its measured `times` where it gives some.
StepCosts price(const Scenario& scenario);

}  // namespace ddpsim
