#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/cost/step_costs.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"

namespace ddpsim {

/// A step, predicted or measured, with the two it is judged by.
struct Result {
  const Step* step = nullptr;
  const StepMetrics* none = nullptr;   ///< the same step without communication
  const StepMetrics* naive = nullptr;  ///< the same step under `naive`

  double speedup() const { return in_seconds(naive->step) / in_seconds(step->metrics.step); }
};

/// One entry of "results"; times in ms, sizes in bytes.
nlohmann::ordered_json result_json(const Scenario& scenario, const Result& result);

/// "ddpsim.run/1".
nlohmann::ordered_json run_json(const Scenario& scenario, const std::vector<Result>& results);

/// CSV with a header; the first seven columns are those of the CS336 tables.
std::string run_csv_header();
std::string run_csv(const Scenario& scenario, const std::vector<Result>& results);

/// The table and the timelines `ddpsim run` prints.
std::string run_table(const Scenario& scenario, const StepCosts& costs,
                      const std::vector<Result>& results);

}  // namespace ddpsim
