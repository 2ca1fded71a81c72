#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// A sentence where a node has more ranks than the ready cluster that it names has devices in one,
/// such as 12 in a DGX of 8: no such machine is known, and its links and NICs are taken as they
/// are. "" elsewhere.
std::string full_nodes_note(const Scenario& scenario, const std::vector<Setting>& settings);

/// A sentence where ranks that would fit into one node of the ready cluster that is named, as it is
/// a rack with more GPUs on one NVLink than any machine has, are on several. "" elsewhere.
std::string split_rack_note(const Scenario& scenario, const std::vector<Setting>& settings);

/// A sentence where `cluster.ranks` fills fewer or more nodes than the ready cluster that it stands
/// beside says that it has. "" elsewhere.
std::string used_nodes_note(const Scenario& scenario, const std::vector<Setting>& settings);

}  // namespace ddpsim
