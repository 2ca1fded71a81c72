#pragma once

#include <vector>

#include "model/scenario.hpp"
#include "sim/calibrate.hpp"

namespace ddpsim {

/// Every measured row of a scenario with the training and the costs of the run it was measured in.
/// A row that differs from the file in more than its strategy (`set:`) is read as a scenario of its
/// own. Throws InputError. The rows point into `scenario`.
std::vector<CalibrationRow> measured_rows(const Scenario& scenario);

/// Which of `rows` calibrate: the first of each strategy in `strategies`.
std::vector<bool> calibrating(const std::vector<CalibrationRow>& rows,
                              const std::vector<Strategy>& strategies);

/// The fit of a scenario's measured rows, on the strategies its file allows.
Fit fit_of(const Scenario& scenario);

}  // namespace ddpsim
