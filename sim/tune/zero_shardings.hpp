#pragma once

#include <vector>

#include "sim/tune/shards.hpp"

namespace ddpsim {

/// The ways to set the options of a ZeRO's variant that are tried, the scenario's and those by
/// itself among them. Not simulated yet.
std::vector<Sharding> zero_shardings(const Scenario& scenario);

/// Of stage 3, the same with each other size of gradient buckets that is tried; else nothing.
std::vector<Sharding> with_buckets(const Scenario& scenario, const Sharding& sharding);

/// The options of the strategy's variant as they are by themselves.
ZeroSettings standard_zero(const Training& training);

/// Puts settings in the place of the strategy's.
void set_zero(Training& training, const ZeroSettings& settings);

/// In how many of them a training is other than by itself.
int zero_changes(const Training& training);

}  // namespace ddpsim
