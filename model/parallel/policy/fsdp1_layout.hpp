#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/parallel/policy/fsdp_layout.hpp"

namespace ddpsim {

/// A unit of FullyShardedDataParallel: its parameters lie in one flat parameter, cut into W equal
/// parts by elements, and so do their gradients.
struct FlatUnit {
  std::int32_t number = 0;
  bool is_root = false;
  bool has_backward = true;  ///< its outputs need a gradient
  /// Nothing frees it: it stays whole from the first step on, and is gathered in none behind that.
  bool stays_whole = false;
  std::size_t first = 0, last = 0;       ///< layers
  std::vector<std::int32_t> parameters;  ///< those that are trained
  std::vector<std::int64_t> begins;      ///< [of parameters] in the flat one
  std::vector<std::int32_t> used;        ///< parameters that get a gradient
  std::vector<program::Slice> places;    ///< [of used] in `gradient`
  DType kept = DType::fp32;              ///< of the part, of its gradient and its update
  DType whole_type = DType::fp32;        ///< of whole parameters and their gradients
  DType sent = DType::fp32;              ///< of the reduce-scatter
  program::Slice part;                   ///< this rank's, which it keeps
  program::Slice cast_part;              ///< in `whole_type`; empty: the part is of that type
  /// What gathers fill in forward and in backward, with its padding: two pieces, for the second
  /// gather may begin before the kernels that read the first have ended.
  std::array<program::Slice, 2> whole;
  program::Slice gradient;       ///< of all its parameters; empty: none of them gets one
  program::Slice later;          ///< a later micro-batch's, until it is added to that
  program::Slice cast_gradient;  ///< in `sent`; empty: it is of that type
  program::Slice padded;         ///< the input of the reduce-scatter; empty: nothing is padded
  program::Slice received;       ///< what the reduce-scatter gives; empty: it is of the type `kept`
  program::Slice part_gradient;  ///< of the rank's part, for the optimizer
  program::Slice later_part;     ///< a later micro-batch's, until it is added to that

  bool is_frozen() const { return parameters.empty(); }
};

/// The origin of a unit's task with that label.
program::Origin origin_of(StepBuilder& step, const FlatUnit& unit, std::string_view label);

/// The units of a step, the root's first if it has parameters, the others by their first layers,
/// with their memory. Each is shared by `ranks` ranks, which are a `group` as in Work. What the
/// optimizer updates is added to the step. Throws std::invalid_argument where
/// FullyShardedDataParallel makes no such unit.
std::vector<FlatUnit> flat_units(StepBuilder& step, std::int32_t ranks, std::int32_t group);

}  // namespace ddpsim
