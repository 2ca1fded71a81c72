#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Parameters that are gathered, and whose gradients are reduce-scattered, together; and the memory
/// that takes.
struct ShardedUnit {
  std::vector<std::int32_t> parameters;  ///< in the order of registration
  std::vector<std::int32_t> reduced;     ///< those that get a gradient
  std::int32_t number = 0;
  bool is_root = false, resharded = true;
  bool is_late = false;             ///< its inputs need no gradient
  std::size_t first = 0, last = 0;  ///< layers
  DType kept = DType::fp32;         ///< the type of parts, of their gradients and of the update
  DType whole = DType::fp32;        ///< of whole parameters and their gradients
  DType sent = DType::fp32;         ///< of the reduce-scatter
  program::Slice gathered;          ///< what all ranks have sent: whole parameters, part by part
  program::Slice part;              ///< this rank's of `gathered`
  program::Slice scattered;         ///< the input of the reduce-scatter
  program::Slice gradient;          ///< of this rank's parts, for the optimizer
  program::Slice partial;     ///< a later micro-batch's, until it is added to that; empty: none is
  program::Slice cast_parts;  ///< all the rank's parts in `whole`; empty: they are kept so
  program::Slice received;    ///< what the reduce-scatter gives; empty: it is of the type `kept`
  program::Operands places, scatter_places;  ///< of parameters in the first part
  Bytes size;                                ///< of its parameters
};

/// Throws std::invalid_argument where fully_shard cannot do the step, or it is not modelled.
void check_fully_shard(const StepBuilder& step);

/// The units of a step, the root's first if it has parameters, the others by their first layers.
/// Each parameter is shared by `ranks` ranks, which are a `group` as in Work. The buffers of their
/// parts, and of what is gathered and scattered, are added to the job.
std::vector<ShardedUnit> sharded_units(StepBuilder& step, std::int32_t ranks, std::int32_t group);

/// "layers.3", "the root": what the first parameters of all its modules share, for people.
std::string name_of(const StepBuilder& step, const ShardedUnit& unit);

}  // namespace ddpsim
