#pragma once

#include <vector>

#include "sim/tune/shards.hpp"

namespace ddpsim {

/// All combinations of settings of fully_shard that are tried, without explicit prefetches; and the
/// scenario's own, whatever it says. Not simulated yet.
std::vector<Sharding> fsdp_shardings(const Scenario& scenario);

/// Of a sharding, the same with each depth of explicit prefetches that is tried, and the
/// scenario's; nothing for units that have settings of their own, which may name what they
/// prefetch.
std::vector<Sharding> with_prefetches(const Scenario& scenario, const Sharding& sharding);

/// In how many settings it is other than fully_shard is by itself, called for each block.
int fsdp_changes(const Sharding& sharding);

/// Are they the same for all that is tried?
bool is_same_fsdp(const FsdpSettings& one, const FsdpSettings& other);

}  // namespace ddpsim
