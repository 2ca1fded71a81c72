#pragma once

#include <vector>

#include "model/ways/ways.hpp"

namespace ddpsim {

/// All combinations of settings of fully_shard that are tried, without explicit prefetches; and the
/// scenario's own, whatever it says.
std::vector<WayToShard> fsdp_ways(const Scenario& scenario);

/// Of a way, the same with each depth of explicit prefetches that is tried, and the
/// scenario's; nothing for units that have settings of their own, which may name what they
/// prefetch.
std::vector<WayToShard> with_prefetches(const Scenario& scenario, const WayToShard& way);

/// In how many settings it is other than fully_shard is by itself, called for each block.
int fsdp_changes(const WayToShard& way);

/// Are they the same for all that is tried?
bool is_same_fsdp(const FsdpSettings& one, const FsdpSettings& other);

}  // namespace ddpsim
