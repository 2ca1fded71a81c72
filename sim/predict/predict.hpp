#pragma once

#include "model/cost/step_costs.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"

namespace ddpsim {

/// One step of `training` at these prices, of ranks that are all alike; of all that have different work
/// (ZeRO's, zero_step.hpp); and, where one rank is known to be slower
/// (StepCosts::slowest_rank), of that one beside them, or in the place of the one with the least work.
/// Schedule and figures are rank 0's, but the step ends with the last rank's.
/// Throws std::invalid_argument as build_schedule does, or if there are too many different ranks.
Step predict(const StepCosts& costs, const Training& training);

/// Any schedule of such ranks, which need not be one step's. Throws std::invalid_argument if there are
/// too many different ranks.
Timeline simulate_ranks(const StepCosts& costs, const Schedule& schedule);

/// Ranks that `simulate_ranks` tells apart.
int simulated_ranks(const StepCosts& costs, const Schedule& schedule);

/// What a scenario's steps cost, scaled to its measured `times` where it gives some.
StepCosts price(const Scenario& scenario);

}  // namespace ddpsim
