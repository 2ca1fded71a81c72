#include "model/parallel/policy/fsdp_gather.hpp"

#include <algorithm>

namespace ddpsim {

using program::Operands;
using program::Slice;

StepStream stream_of_shards(const StepBuilder& step, StepStream on_gpus) {
  if (!step.writer.device.synchronous) return on_gpus;
  return on_gpus == StepStream::copy_in ? StepStream::host : StepStream::communication;
}

DType type_of(const StepBuilder& step, const Slice& slice) {
  return step.writer.memory.job.buffers[slice.buffer].type;
}

Work copy_beside_host(const StepBuilder& step, Operation operation, std::int64_t elements,
                      DType type) {
  Work copy;
  copy.operation = operation;
  copy.message = operation == Operation::copy_to_device ? Message::parameters : Message::gradients;
  copy.payload = elements * size_of(type);
  copy.known_time = copy.payload / step.training.offload_policy->copies;
  return copy;
}

program::Origin origin_of(StepBuilder& step, const ShardedUnit& unit, std::string_view label) {
  program::Origin origin;
  origin.group = unit.number;
  origin.label = step.writer.memory.label(label);
  return origin;
}

void FsdpGathers::begin_forward(StepBuilder& step) {
  gate_ = step.writer.last_kernel;
  last_copy_out_ = nobody;
}

void FsdpGathers::gather(StepBuilder& step, StepUnit& unit) {
  if (unit.is_whole || unit.gathering != nobody) return;
  StepWriter& writer = step.writer;
  // What neighbours keep was copied on the stream of kernels.
  gate_ = std::max(gate_, std::exchange(unit.resharded_by, nobody));
  std::vector<Slice> parts;
  for (const UnitMember& member : unit.members)
    parts.push_back(unit.is_among_neighbours ? member.for_neighbours : member.part);
  const Slice& to_cast = unit.is_among_neighbours ? unit.copied_parts : unit.cast_parts;
  const bool is_on_host = step.training.offload_policy && !unit.is_among_neighbours;
  if (is_on_host)
    copy_to_device(step, unit, parts);
  else if (!to_cast.empty() && !step.training.offload_policy)
    cast(step, unit, parts);
  writer.comes(unit.gathered, StepStream::copy_in);
  const Slice& mine = unit.is_among_neighbours ? unit.neighbours_part : unit.part;
  const Bytes part = mine.count * size_of(unit.whole);
  const Work copy = moving(Operation::pack, 2 * part);
  const Operands to = writer.memory.list({mine});
  writer.add(Operation::pack, stream_of_shards(step, StepStream::copy_in), writer.number_of(copy),
             program::Pack{.to = to, .from = writer.memory.list(parts)},
             origin_of(step, unit, "all-gather copy-in"));
  behind_gate(step);
  StepWriter::Sending sending;
  sending.stream = stream_of_shards(step, StepStream::gather);
  sending.work.operation = Operation::all_gather;
  sending.work.message = Message::parameters;
  sending.work.payload = part;
  sending.work.group = group_;
  if (unit.is_among_neighbours) {
    sending.work.group = unit.neighbours;
    sending.work.communicator = queue_of_neighbours(step);
  }
  sending.work.handed_over = !writer.device.synchronous;  // there the host waits at once
  sending.what.what = program::Collectives::all_gather;
  sending.what.from = mine;
  sending.what.to = unit.gathered;
  sending.of.group = unit.number;
  sending.input = sending.ready = writer.newest();
  unit.gathering = writer.send(sending);
  if (is_on_host) {
    for (const UnitMember& member : unit.members)
      if (unit.cast_parts.empty() || type_of(step, member.on_device) == unit.whole)
        writer.goes(member.on_device, StepStream::copy_in);
  }
  if (!to_cast.empty() && (is_on_host || !step.training.offload_policy))
    writer.goes(to_cast, StepStream::copy_in);
  if (writer.device.synchronous) writer.await(unit.gathering, unit.number);
}

/// F67: each part by a copy of its own, and where whole parameters are of another type, by a cast
/// of its own behind that.
void FsdpGathers::copy_to_device(StepBuilder& step, const StepUnit& unit,
                                 std::vector<Slice>& parts) {
  StepWriter& writer = step.writer;
  std::int64_t begin = 0;
  if (!unit.cast_parts.empty()) writer.comes(unit.cast_parts, StepStream::copy_in);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Slice& on_device = unit.members[i].on_device;
    const DType kept = type_of(step, on_device);
    writer.comes(on_device, StepStream::copy_in);
    const Work copy = copy_beside_host(step, Operation::copy_to_device, on_device.count, kept);
    writer.add(Operation::copy_to_device, StepStream::copy_in, writer.number_of(copy),
               program::Move{.to = on_device, .from = parts[i]},
               origin_of(step, unit, "part to the device"));
    behind_gate(step);
    parts[i] = on_device;
    if (kept == unit.whole) continue;
    parts[i] = {unit.cast_parts.buffer, program::nowhere, begin, on_device.count};
    begin += on_device.count;
    const Work cast =
        moving(Operation::cast, on_device.count * (size_of(kept) + size_of(unit.whole)),
               Caller::python_loop);
    writer.add(Operation::cast, StepStream::copy_in, writer.number_of(cast),
               program::Cast{.to = parts[i], .from = on_device},
               origin_of(step, unit, "all-gather cast"));
    writer.goes(on_device, StepStream::copy_in);
  }
}

/// Parts that are kept in another type than whole parameters into one piece, in which they are in
/// place of those from then on. Parts for neighbours are of that type already, and are copied.
void FsdpGathers::cast(StepBuilder& step, const StepUnit& unit, std::vector<Slice>& parts) {
  StepWriter& writer = step.writer;
  const bool casts = !unit.is_among_neighbours;
  const Slice& piece = casts ? unit.cast_parts : unit.copied_parts;
  writer.comes(piece, StepStream::copy_in);
  std::vector<Slice> from, to;
  Bytes read;
  std::int64_t begin = 0;
  for (Slice& each : parts) {
    const DType type = type_of(step, each);
    if (casts && type == unit.whole) continue;
    from.push_back(each);
    read += each.count * size_of(type);
    to.push_back({piece.buffer, program::nowhere, begin, each.count});
    begin += each.count;
    each = to.back();
  }
  const Operation operation = casts ? Operation::cast : Operation::pack;
  const Work work = moving(operation, read + piece.count * size_of(unit.whole));
  const Operands into = writer.memory.list(to);
  writer.add(operation, stream_of_shards(step, StepStream::copy_in), writer.number_of(work),
             program::Pack{.to = into, .from = writer.memory.list(from)},
             origin_of(step, unit, casts ? "all-gather cast" : "all-gather copy-together"));
  behind_gate(step);
}

void FsdpGathers::copy_out_in_forward(StepBuilder& step, StepUnit& unit) {
  if (last_copy_out_ != nobody) gate_ = last_copy_out_;
  let_go_of_gathered(step);
  copy_out(step, unit);
  gathered_ = &unit;
}

void FsdpGathers::copy_out_in_backward(StepBuilder& step, StepUnit& unit) {
  copy_out(step, unit);
  step.writer.goes(unit.gathered, StepStream::copy_in);
  gate_ = last_copy_out_;
}

void FsdpGathers::copy_out(StepBuilder& step, StepUnit& unit) {
  StepWriter& writer = step.writer;
  std::vector<Slice> whole;
  for (const UnitMember& member : unit.members) whole.push_back(member.whole);
  for (const Slice& each : whole) writer.comes(each, StepStream::compute);
  program::Unchunk unchunk;
  unchunk.to = writer.memory.list(whole);
  unchunk.places = unit.is_among_neighbours ? unit.neighbours_places : unit.places;
  unchunk.from = unit.gathered;
  unchunk.parts = unit.is_among_neighbours ? unit.neighbours : ranks_;
  Work work = moving(Operation::pack, 2 * unit.gathered.count * size_of(unit.whole));
  work.message = Message::parameters;
  writer.kernel_task(Operation::pack, work, unchunk, origin_of(step, unit, "all-gather copy-out"));
  writer.depend(unit.gathering);
  unit.gathering = nobody;
  if (std::exchange(unit.is_among_neighbours, false))
    for (const UnitMember& each : unit.members)
      writer.goes(each.for_neighbours, StepStream::compute);
  unit.is_whole = true;
  last_copy_out_ = writer.newest();
}

void FsdpGathers::reshard(StepBuilder& step, StepUnit& unit) {
  if (unit.neighbours == 0) return free(step, unit);
  StepWriter& writer = step.writer;
  for (const UnitMember& member : unit.members) {
    const Slice& part = member.for_neighbours;
    Slice from = member.whole;
    from.part_of = unit.neighbours_part.part_of;
    from.count = part.count;
    writer.comes(part, StepStream::compute);
    const Work work =
        moving(Operation::pack, 2 * part.count * size_of(unit.whole), Caller::python_loop);
    const Operands to = writer.memory.list({part});
    program::Origin origin = origin_of(step, unit, "part for neighbours");
    origin.parameter = member.parameter;
    writer.kernel_task(Operation::pack, work,
                       program::Pack{.to = to, .from = writer.memory.list({from})}, origin);
    writer.goes(from, StepStream::compute);
  }
  unit.resharded_by = writer.newest();
  unit.is_whole = false;
  unit.is_among_neighbours = true;
}

void FsdpGathers::end_forward(StepBuilder& step) {
  if (last_copy_out_ != nobody) gate_ = last_copy_out_;
  let_go_of_gathered(step);
}

void FsdpGathers::free(StepBuilder& step, StepUnit& unit) {
  for (const UnitMember& member : unit.members) {
    if (unit.is_whole) step.writer.goes(member.whole, StepStream::compute);
    if (unit.is_among_neighbours) step.writer.goes(member.for_neighbours, StepStream::compute);
  }
  unit.is_whole = unit.is_among_neighbours = false;
}

void FsdpGathers::drop(StepBuilder& step, StepUnit& unit) {
  if (unit.gathering == nobody) return;
  step.writer.await(unit.gathering, unit.number);
  step.writer.goes(unit.gathered, StepStream::copy_in);
  unit.gathering = nobody;
}

void FsdpGathers::let_go_of_gathered(StepBuilder& step) {
  if (gathered_ != nullptr) step.writer.goes(gathered_->gathered, StepStream::copy_in);
  gathered_ = nullptr;
}

}  // namespace ddpsim
