#include "model/parallel/policy/fsdp_layout.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "model/parallel/policy/fsdp_made_units.hpp"
#include "model/parallel/policy/fsdp_units.hpp"
#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {
namespace {

using program::Slice;

constexpr std::int64_t parts_of(std::int64_t rows, std::int64_t ranks) {
  return (rows + ranks - 1) / ranks;
}

std::vector<Slice> places(const Slice& packed, const std::vector<std::int64_t>& lengths) {
  std::vector<Slice> places;
  std::int64_t begin = 0;
  for (const std::int64_t each : lengths) {
    places.push_back({packed.buffer, program::nowhere, begin, each});
    begin += each;
  }
  return places;
}

/// The types of a unit, of which fully_shard allows one for what is trained (F4), and which gathers
/// bytes where whole parameters are of several (F14).
void find_types(const StepBuilder& step, ShardedUnit& unit) {
  const auto whole_type = [&](const UnitMember& member) {
    if (member.frozen == nobody) return step.memory.type(member.parameter);
    return step.training.mp_policy.param_dtype.value_or(kept_type(step, member));
  };
  const UnitMember& first = unit.members.front();
  unit.kept = kept_type(step, first);
  unit.whole = whole_type(first);
  unit.sent = step.training.mp_policy.reduce_dtype.value_or(unit.whole);
  for (const UnitMember& member : unit.members) {
    if (member.frozen == nobody && kept_type(step, member) != unit.kept)
      check(Refusal{"training.units",
                    fmt::format("{} is {}, and {} in the same unit is {}: a unit of fully_shard "
                                "has one type",
                                name_of(step, member), name_of(kept_type(step, member)),
                                name_of(step, first), name_of(unit.kept)),
                    {}});
    if (whole_type(member) != unit.whole)
      check(
          Refusal{"training.units",
                  fmt::format("{} is {}, and {} in the same unit is {}, which fully_shard gathers "
                              "as bytes: that is not modelled; write mp_policy.param_dtype, or "
                              "units of their own",
                              name_of(step, member), name_of(whole_type(member)),
                              name_of(step, first), name_of(unit.whole)),
                  {}});
  }
}

/// F67: with CPU offload.
void keep_on_host(StepBuilder& step, UnitMember& member) {
  if (!step.training.offload_policy) return;
  program::JobMemory& memory = step.writer.memory;
  program::Buffer& part = memory.job.buffers[member.part.buffer];
  part.place = program::Place::host;
  const auto [index, type] = std::pair{part.index, part.type};
  member.on_device = memory.add("part on the device", index, program::Holds::gathered, type,
                                member.length, program::Life::held);
}

/// The rank's part of a member, and the whole of it.
void lay_out_member(StepBuilder& step, std::int32_t ranks, std::int16_t all,
                    const ShardedUnit& unit, UnitMember& member) {
  program::JobMemory& memory = step.writer.memory;
  const auto length = [&](const MatrixShape& shape) {
    return parts_of(shape.rows, ranks) * shape.columns;
  };
  if (member.frozen == nobody) {
    member.length = length(step.works.matrices[at(member.parameter)]);
    step.memory.shard(member.parameter, member.length, all, ranks * member.length);
    member.part = step.memory.shard_of(member.parameter);
    member.whole = step.memory.padded_weight(member.parameter);
    keep_on_host(step, member);
    return;
  }
  member.length = length(matrix_of(step.works.frozen[at(member.frozen)].shape));
  member.part =
      memory.add("frozen part", member.frozen, program::Holds::frozen, kept_type(step, member),
                 member.length, program::Life::job, program::Start::zeros);
  member.whole = memory.add("frozen", member.frozen, program::Holds::parameter, unit.whole,
                            ranks * member.length, program::Life::held);
  keep_on_host(step, member);
}

/// F30: of whole parameters, padding and all, each of some ranks next to each other keeps a part.
void lay_out_for_neighbours(StepBuilder& step, std::int32_t ranks, ShardedUnit& unit) {
  program::JobMemory& memory = step.writer.memory;
  const std::int16_t among = step.writer.communicator(queue_of_neighbours(step), unit.neighbours);
  std::vector<std::int64_t> lengths;
  for (UnitMember& member : unit.members) {
    lengths.push_back(member.length * ranks / unit.neighbours);
    member.for_neighbours = memory.add(
        "part for neighbours", member.frozen == nobody ? member.parameter : member.frozen,
        member.frozen == nobody ? program::Holds::parameter : program::Holds::frozen, unit.whole,
        lengths.back(), program::Life::held);
  }
  const std::int64_t length = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  unit.neighbours_part = {unit.gathered.buffer, among, 0, length};
  unit.neighbours_places = memory.list(places(unit.gathered, lengths));
  if (!unit.cast_parts.empty())  // PyTorch copies where it would cast
    unit.copied_parts = memory.add("copied parts", unit.number, program::Holds::gathered,
                                   unit.whole, length, program::Life::held);
}

void lay_out_gather(StepBuilder& step, std::int32_t ranks, std::int32_t group, ShardedUnit& unit) {
  program::JobMemory& memory = step.writer.memory;
  const std::int16_t all = step.writer.communicator(0, group);
  std::vector<std::int64_t> lengths;
  std::int64_t cast = 0;
  for (UnitMember& member : unit.members) {
    lay_out_member(step, ranks, all, unit, member);
    lengths.push_back(member.length);
    if (kept_type(step, member) != unit.whole) cast += member.length;
  }
  for (const std::int32_t each : unit.parameters) unit.size += step.works.gradients[at(each)].size;
  const std::int64_t length = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  unit.gathered = memory.add("gathered", unit.number, program::Holds::gathered, unit.whole,
                             ranks * length, program::Life::held);
  unit.part = {unit.gathered.buffer, all, 0, length};
  unit.places = memory.list(places(unit.gathered, lengths));
  if (cast > 0)
    unit.cast_parts = memory.add("cast parts", unit.number, program::Holds::gathered, unit.whole,
                                 cast, program::Life::held);
  if (unit.neighbours != 0) lay_out_for_neighbours(step, ranks, unit);
}

void lay_out_scatter(StepBuilder& step, std::int32_t ranks, ShardedUnit& unit) {
  if (unit.reduced.empty()) return;
  program::JobMemory& memory = step.writer.memory;
  std::vector<std::int64_t> reduced;
  for (const UnitMember& member : unit.members)
    if (member.frozen == nobody && !step.unused(member.parameter)) reduced.push_back(member.length);
  const std::int64_t sent = std::accumulate(reduced.begin(), reduced.end(), std::int64_t{0});
  unit.scattered = memory.add("scattered", unit.number, program::Holds::scattered, unit.sent,
                              ranks * sent, program::Life::held);
  unit.scatter_places = memory.list(places(unit.scattered, reduced));
  if (unit.sent != unit.kept)
    unit.received = memory.add("received", unit.number, program::Holds::scattered, unit.sent, sent,
                               program::Life::held);
  const bool offloads = step.training.offload_policy.has_value();
  unit.gradient = memory.add("shard", unit.number, program::Holds::gradient, unit.kept, sent,
                             offloads ? program::Life::held : program::Life::step);
  if (offloads) {
    unit.gradient_on_host =
        memory.add("shard on the host", unit.number, program::Holds::gradient, unit.kept, sent);
    memory.job.buffers.back().place = program::Place::host;
  }
  if (step.training.sums_before_all_reduce())
    unit.summed = memory.add("sum of parts", unit.number, program::Holds::gradient, unit.sent, sent,
                             program::Life::step);
  if (step.training.micro_batches > 1 && !step.training.no_sync)
    unit.partial = memory.add("part", unit.number, program::Holds::gradient, unit.kept, sent,
                              program::Life::step);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    const Slice& gradient = offloads ? unit.gradient_on_host : unit.gradient;
    step.memory.set_shard_gradient(unit.reduced[i],
                                   {gradient.buffer, program::nowhere, begin, reduced[i]});
    begin += reduced[i];
  }
}

}  // namespace

std::uint8_t queue_of_scatters(const StepBuilder& step) {
  return step.training.separate_reduce_scatter_group ? 1 : 0;
}
std::uint8_t queue_of_replicas(const StepBuilder& step) {
  return static_cast<std::uint8_t>(queue_of_scatters(step) + 1);
}
std::uint8_t queue_of_neighbours(const StepBuilder& step) {
  return static_cast<std::uint8_t>(queue_of_scatters(step) + (step.training.replicate > 1 ? 2 : 1));
}

std::vector<ShardedUnit> sharded_units(StepBuilder& step, std::int32_t ranks, std::int32_t group) {
  std::vector<ShardedUnit> units = made_units(step);
  for (ShardedUnit& unit : units) {
    find_types(step, unit);
    lay_out_gather(step, ranks, group, unit);
    lay_out_scatter(step, ranks, unit);
  }
  return units;
}

DType kept_type(const StepBuilder& step, const UnitMember& member) {
  return member.frozen == nobody ? step.memory.kept_type(member.parameter)
                                 : stored_type(step.works.frozen[at(member.frozen)].dtype);
}

const std::string& name_of(const StepBuilder& step, const UnitMember& member) {
  return member.frozen == nobody ? step.works.names[at(member.parameter)]
                                 : step.works.frozen[at(member.frozen)].name;
}

std::string name_of(const StepBuilder& step, const ShardedUnit& unit) {
  if (unit.is_root) return "the root";
  if (!unit.modules.empty()) return unit.modules.front();
  const std::string& first = name_of(step, unit.members.front());
  const std::string block = block_of(first);
  return block.empty() ? first.substr(0, first.rfind('.')) : block;
}

}  // namespace ddpsim
