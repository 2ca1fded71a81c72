#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// A parameter of a unit, trained or frozen, and its memory on one rank.
struct UnitMember {
  std::int32_t parameter = nobody;  ///< if it is trained
  std::int32_t frozen = nobody;     ///< else its index into WorkloadGradients::frozen
  std::int64_t length = 0;          ///< elements of a rank's part
  program::Slice part;              ///< that the rank keeps
  program::Slice on_device;         ///< a copy of it there, where it is kept on the host
  program::Slice whole;             ///< with its padding
  program::Slice for_neighbours;    ///< what this rank keeps of it for them behind forward
};

/// Parameters that are gathered, and whose gradients are reduce-scattered, together; and the memory
/// that takes.
struct ShardedUnit {
  std::vector<UnitMember> members;       ///< as they are gathered: first those that are trained
  std::vector<std::int32_t> parameters;  ///< those that are trained, in the order of registration
  std::vector<std::int32_t> reduced;     ///< those that get a gradient
  std::vector<std::string> modules;      ///< of the call; empty: not known, or the root's
  std::int32_t depth = 0;                ///< the fewest modules that are around one of them
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
  bool has_backward = true;         ///< its outputs need one
  KernelRange forward, backward;    ///< as in ParameterUse, of its modules
  DType kept = DType::fp32;         ///< the type of trained parts, of their gradients and updates
  DType whole = DType::fp32;        ///< of whole parameters and their gradients
  DType sent = DType::fp32;         ///< of the reduce-scatter
  program::Slice gathered;          ///< what all ranks have sent: whole parameters, part by part
  program::Slice part;              ///< this rank's of `gathered`
  program::Slice scattered;         ///< the input of the reduce-scatter
  program::Slice gradient;          ///< of this rank's parts, for the optimizer
  program::Slice gradient_on_host;  ///< a copy of it; empty: the device's optimizer takes it there
  program::Slice partial;  ///< a later micro-batch's, until it is added to that; empty: none is
  program::Slice summed;   ///< of micro-batches, until replicas all-reduce it; empty: they all do
  program::Slice cast_parts;  ///< in `whole`, of the parts that are kept otherwise; empty: none is
  program::Slice received;    ///< what the reduce-scatter gives; empty: it is of the type `kept`
  program::Operands places, scatter_places;  ///< of members in the first part
  // With `neighbours`:
  program::Slice neighbours_part;       ///< this rank's of `gathered` among them
  program::Slice copied_parts;          ///< of what it keeps, before packing; empty: not copied
  program::Operands neighbours_places;  ///< as `places`
  Bytes size;                           ///< of the parameters that are trained
};

/// The queues of collectives besides that of gathers and, unless they have one of their own, of
/// reduce-scatters (F39): of all-reduces among replicas, and of gathers among neighbours.
std::uint8_t queue_of_scatters(const StepBuilder& step);
std::uint8_t queue_of_replicas(const StepBuilder& step);
std::uint8_t queue_of_neighbours(const StepBuilder& step);

/// The units of a step, the root's first if it has parameters, the others by their first layers.
/// Each parameter is shared by `ranks` ranks, which are a `group` as in Work. The buffers of their
/// parts, and of what is gathered and scattered, are added to the job.
std::vector<ShardedUnit> sharded_units(StepBuilder& step, std::int32_t ranks, std::int32_t group);

/// The type that a member is kept in.
DType kept_type(const StepBuilder& step, const UnitMember& member);
const std::string& name_of(const StepBuilder& step, const UnitMember& member);
/// "layers.3", "the root": the first of its modules, or what its first parameter is in, for people.
std::string name_of(const StepBuilder& step, const ShardedUnit& unit);

}  // namespace ddpsim
