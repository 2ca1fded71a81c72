#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// The note on a link between nodes where there is one node.
inline constexpr const char* no_network_note = "inter_node has no effect: there is one node";

/// A sentence on each of `settings` of the cluster's links that changes nothing, or less than one
/// may expect: the link between nodes of a single node, that inside nodes of one rank, and figures
/// of links whose all-reduces a measured table prices.
std::vector<std::string> idle_links_notes(const Scenario& scenario,
                                          const std::vector<Setting>& settings);

}  // namespace ddpsim
