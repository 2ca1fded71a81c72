#pragma once

#include <string>
#include <vector>

#include "tools/study/known_accuracy.hpp"
#include "tools/study/measured_rows.hpp"

namespace ddpsim {

/// A note where a measured row of the scenario that nothing is fitted to took far longer or shorter
/// than is predicted for it: by a tenth, and by more than such predictions usually are off. Of
/// several the one farthest off, and of rows of these strategies alone. Rows of another step than
/// the scenario's (step_facts.hpp) are left out. Empty: there is none, or the laws alone were asked
/// for.
std::vector<std::string> far_row_notes(const Scenario& scenario, const CalibratedModel& priced,
                                       const Knowledge& knowledge,
                                       const std::vector<Strategy>& strategies);

}  // namespace ddpsim
