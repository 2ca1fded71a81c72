#pragma once

#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"

namespace ddpsim {

/// A workload profile (format: ddpsim.workload/1) as a YAML file. `remarks`, lines that each begin
/// with "# ", stand at its top. It ends with a mark without which it is refused. Reading it back
/// gives the same profile, to the picosecond.
std::string workload_profile_yaml(const WorkloadProfile& profile, const std::string& remarks);

/// A link profile (format: ddpsim.link/1), likewise.
std::string link_profile_yaml(const Link& link, const std::string& remarks);

/// The command that predicts over the link in FILE: one that joins nodes needs several of them, and
/// one that was measured on nodes of unequal size the ranks of each.
std::string next_with_link(const Link& link, const std::vector<int>& unequal_nodes = {});

}  // namespace ddpsim
