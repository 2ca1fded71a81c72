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

}  // namespace ddpsim
