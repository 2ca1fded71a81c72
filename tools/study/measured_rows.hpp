#pragma once

#include <optional>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"
#include "sim/predict/fit.hpp"
#include "tools/study/carried_fit.hpp"

namespace ddpsim {

/// Every measured row of a scenario with the training and the model of the run it was measured in.
/// A row that differs from the file in more than its strategy (`set:`) is read as a scenario of its
/// own. `settings`: keys that every scenario was read with besides. Throws InputError. The rows
/// point into `scenario`.
std::vector<CalibrationRow> measured_rows(const Scenario& scenario,
                                          const std::vector<Setting>& settings = {});

/// The fit of those of the scenario's measured `rows` that fitted_rows.hpp chooses for these
/// strategies, with a note on one that has no use. `settings`: with which `rows` were read besides.
Fit fit_chosen(const Scenario& scenario, const std::vector<CalibrationRow>& rows,
               const std::vector<Strategy>& strategies, const std::vector<Setting>& settings = {});

/// What a scenario's steps cost, and the fit that made it so.
struct CalibratedModel {
  StepModel model;
  /// The fit to the measured rows; none if the scenario has no such rows, or the laws alone were
  /// asked for.
  std::optional<Fit> fit;
  /// In what the scenario is another than what those rows are of.
  std::vector<OtherThanMeasured> others{};
};

/// Prices a scenario; calibrated on the measured rows its file allows, unless `laws_only`.
CalibratedModel price_calibrated(const Scenario& scenario, bool laws_only);

}  // namespace ddpsim
