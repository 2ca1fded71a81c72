#pragma once

#include <vector>

#include "model/scenario.hpp"
#include "sim/calibrate.hpp"

namespace ddpsim {

/// Every measured row of a scenario with the training and the costs of the run it was measured in. A row that
/// differs from the file in more than its strategy (`set:`) is read as a scenario of its own. Throws InputError.
/// The rows point into `scenario`.
std::vector<CalibrationRow> measured_rows(const Scenario& scenario);

/// Which of `rows` calibrate: the first of each strategy in `asked` (empty: as the file says). Where those fix no
/// compute time (none, naive), the file's own list counts as well.
std::vector<bool> calibrating(const Measured& measured, const std::vector<CalibrationRow>& rows,
                              const std::vector<Strategy>& asked);

/// The fit of a scenario's measured rows, on the strategies its file allows.
Fit fit_of(const Scenario& scenario);

}  // namespace ddpsim
