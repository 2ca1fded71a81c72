#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// What of the cluster does not do what one may expect, a sentence each: `settings` of the command
/// line that change nothing, links that no such devices have, and what all-reduces are priced by.
std::vector<std::string> cluster_notes(const Scenario& scenario,
                                       const std::vector<Setting>& settings);

/// How many ranks measured the all-reduces that the cluster's are interpolated from: its own number
/// where their table does not say; 0: they are by a law.
int ranks_of_table(const CalibratedCluster& cluster);

}  // namespace ddpsim
