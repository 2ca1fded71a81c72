#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/workload/workload.hpp"

namespace ddpsim {

/// Names of parameters by the numbers that units give them: those that are trained, behind them the
/// frozen ones.
std::vector<std::string> names_for_units(const Workload& workload);

/// The units people make of a network by default: a call of fully_shard for each block. A block is
/// what parameters share up to the first number in their names: "layers.3" of
/// "layers.3.attention.wq.weight". Parameters without a number are in none: they are the root's.
/// Blocks of a list in the order of their numbers, lists in that of their first parameters; each
/// unit's parameters in their own.
std::vector<std::vector<std::int32_t>> block_units(std::span<const std::string> names);

/// The block of a name; empty: it is in none.
std::string block_of(const std::string& name);

}  // namespace ddpsim
