#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ddpsim {

/// The units people make of a network by default: a call of fully_shard for each block. A block is
/// what parameters share up to the first number in their names: "layers.3" of
/// "layers.3.attention.wq.weight". Parameters without a number are in none: they are the root's.
/// In the order of their first parameters; each unit's parameters in that of registration.
std::vector<std::vector<std::int32_t>> block_units(std::span<const std::string> names);

/// The block of a name; empty: it is in none.
std::string block_of(const std::string& name);

}  // namespace ddpsim
