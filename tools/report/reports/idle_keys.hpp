#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// That keys of `training` are DistributedDataParallel's where strategies that shard are compared
/// and it is not, or fully_shard's where that is not; and that a measured row says of a sharded
/// step what nothing is fitted to.
std::vector<std::string> idle_key_notes(const Scenario& scenario);

}  // namespace ddpsim
