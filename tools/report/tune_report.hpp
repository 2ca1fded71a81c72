#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "model/cost/step_costs.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/tune/tune.hpp"

namespace ddpsim {

/// What `ddpsim tune` prints: the choices beside each other, the step against the cap, what errors do
/// to it, a verdict.
std::string tune_text(const Scenario& scenario, const StepCosts& costs, const Tuning& tuning,
                      const TuneOptions& options);

/// "ddpsim.tune/1"; times in ms, sizes in bytes.
nlohmann::ordered_json tune_json(const Scenario& scenario, const Tuning& tuning);

/// Every distinct cap with its step, as CSV.
std::string tune_csv(const Tuning& tuning);

}  // namespace ddpsim
