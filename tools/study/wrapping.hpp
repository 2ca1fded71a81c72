#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// The names of modules that go together into one call of fully_shard.
using UnitModules = std::vector<std::string>;

/// The modules of each unit but the root's, in the order of the calls: the outermost ones whose
/// parameters, less those of earlier units, are the unit's, but for a list of blocks its blocks.
/// Empty where a unit's parameters are not those of modules by their names.
std::vector<UnitModules> unit_modules(const Workload& workload, const Training& training);

/// Are the units the blocks, without settings of their own, as where nothing is said of them?
bool are_blocks(const Workload& workload, const Training& training);

/// The units as `training.units` lists them, less what it says of single ones: `["layers.*",
/// "norm+head"]`. Empty: there are none, or they are not modules by their names.
std::string units_text(const Workload& workload, const Training& training);

/// The Python that wraps a user's `model` as the scenario's training under fsdp says: checkpoints
/// of blocks, where the catalogue's model is given them, then a call of fully_shard for each unit
/// and for the root. A description has its checkpoints in it, as its user's model does.
std::string fully_shard_code(const Scenario& scenario);

}  // namespace ddpsim
