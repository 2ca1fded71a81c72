#pragma once

#include <vector>

#include "model/ways/ways.hpp"

namespace ddpsim {

/// The ways to set the options of a ZeRO's variant that are tried, the scenario's and those by
/// itself among them.
std::vector<WayToShard> zero_ways(const Scenario& scenario);

/// Of stage 3, the same with each other size of gradient buckets that is tried; else nothing.
std::vector<WayToShard> with_buckets(const Scenario& scenario, const WayToShard& way);

/// The options of the strategy's variant as they are by themselves.
ZeroSettings standard_zero(const Training& training);

/// Puts settings in the place of the strategy's.
void set_zero(Training& training, const ZeroSettings& settings);

/// In how many of them a training is other than by itself.
int zero_changes(const Training& training);

}  // namespace ddpsim
