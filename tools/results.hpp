#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/scenario.hpp"
#include "sim/predict.hpp"

namespace ddpsim {

/// One strategy's prediction with the two steps it is judged by.
struct Result {
  const Prediction* prediction = nullptr;
  const StepMetrics* none = nullptr;   ///< the same step without communication
  const StepMetrics* naive = nullptr;  ///< the same step under `naive`

  double speedup() const { return in_seconds(naive->step) / in_seconds(prediction->metrics.step); }
};

/// "ddpsim.run/1"; times in ms, sizes in bytes.
nlohmann::ordered_json run_json(const Scenario& scenario, const std::vector<Result>& results);

/// CSV with a header; the first seven columns are those of the CS336 tables.
std::string run_csv_header();
std::string run_csv(const Scenario& scenario, const std::vector<Result>& results);

/// The table and the timelines `ddpsim run` prints.
std::string run_table(const Scenario& scenario, const StepCosts& costs,
                      const std::vector<Result>& results);

}  // namespace ddpsim
