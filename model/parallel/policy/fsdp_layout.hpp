#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Parameters that are gathered, and whose gradients are reduce-scattered, together; and the memory
/// that takes.
struct ShardedUnit {
  std::vector<std::int32_t> parameters;  ///< in the order of registration
  std::vector<std::int32_t> reduced;     ///< those that get a gradient
  std::int32_t number = 0;
  std::int32_t given = nobody;  ///< index into FsdpSettings::units; nobody: in none
  bool is_root = false;
  bool resharded = true;  ///< its parameters are freed behind its forward pass
  /// Then so many ranks next to each other keep one of as many parts each, and gather these in
  /// backward; 0: the unit's own parts are gathered again.
  std::int32_t neighbours = 0;
  bool unshard_in_backward = true;
  /// Units that are gathered behind the copy-out of this one; in backward in place of the unit
  /// before it, if there are any.
  std::vector<std::int32_t> forward_prefetch, backward_prefetch;
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
  // With `neighbours`:
  program::Slice neighbours_part;          ///< this rank's of `gathered` among them
  std::vector<program::Slice> kept_parts;  ///< [parameter of the unit] what this rank keeps
  program::Slice copied_parts;             ///< of those, before they are packed; empty: none are
  program::Operands neighbours_places;     ///< as `places`
  Bytes size;                              ///< of its parameters
};

/// The queues of collectives besides that of gathers and, unless they have one of their own, of
/// reduce-scatters (F39): of all-reduces among replicas, and of gathers among neighbours.
std::uint8_t queue_of_scatters(const StepBuilder& step);
std::uint8_t queue_of_replicas(const StepBuilder& step);
std::uint8_t queue_of_neighbours(const StepBuilder& step);

/// Why so many ranks cannot be the replicas and groups that settings of fsdp say.
std::optional<Refusal> mesh_refusal(const Training& training, int ranks);

/// Throws std::invalid_argument where fully_shard cannot do the step, or it is not modelled.
void check_fully_shard(const StepBuilder& step);

/// The units of a step, the root's first if it has parameters, the others by their first layers.
/// Each parameter is shared by `ranks` ranks, which are a `group` as in Work. The buffers of their
/// parts, and of what is gathered and scattered, are added to the job.
std::vector<ShardedUnit> sharded_units(StepBuilder& step, std::int32_t ranks, std::int32_t group);

/// "layers.3", "the root": what the first parameters of all its modules share, for people.
std::string name_of(const StepBuilder& step, const ShardedUnit& unit);

}  // namespace ddpsim
