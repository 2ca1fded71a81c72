#pragma once

#include <vector>

#include "model/parallel/policy/fsdp_layout.hpp"

namespace ddpsim {

/// The units of a step without memory, the root's first if it has members, the others by their
/// first layers: which parameters each has, where in the passes it begins and ends, and what calls
/// of fully_shard and setters of its module say of it. Throws std::invalid_argument.
std::vector<ShardedUnit> made_units(const StepBuilder& step);

}  // namespace ddpsim
