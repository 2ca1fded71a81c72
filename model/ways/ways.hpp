#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/parallel/training.hpp"
#include "model/scenario/scenario.hpp"

namespace ddpsim {

// What a search may set of strategies that shard, each in a file of its own: fsdp_ways.hpp,
// zero_ways.hpp.

/// One way to set them.
struct WayToShard {
  // Of fsdp:
  /// So many blocks next to each other are a unit; 0: the units are the scenario's own.
  int blocks = 1;
  bool own_head = false;  ///< the root's parameters behind the last block are a unit of their own

  Training training{};  ///< the scenario's, set so

  /// In how many settings it is other than fully_shard is by itself, called for each block; or
  /// than a ZeRO's variant is.
  int changes() const;
  /// Are the settings that are tried those of `other`, which has the same strategy?
  bool is_like(const Training& other) const;
};

/// Why the strategy's settings are not tried; none: they are.
std::optional<std::string> why_no_ways(const Training& training);

/// The ways to set the scenario's strategy that are tried, the scenario's own and the usual one
/// among them.
std::vector<WayToShard> ways_to_shard(const Scenario& scenario);

/// Of one of the best, those with other values of settings that hardly depend on the rest.
std::vector<WayToShard> variations(const Scenario& scenario, const WayToShard& way);

/// What the strategy is by itself; of a ZeRO, its variant.
Training usual_settings(Training training);

}  // namespace ddpsim
