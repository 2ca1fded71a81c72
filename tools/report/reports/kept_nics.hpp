#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// A sentence on a setting of `cluster.inter_node` that puts a network of another kind in the place
/// of a ready cluster's and keeps the number of its NICs, where such a network by itself would have
/// another number of them: whose NICs they are, and what to write for its own. "" elsewhere.
std::string kept_nics_note(const Scenario& scenario, const std::vector<Setting>& settings);

}  // namespace ddpsim
