#include "model/parallel/hooks/hook_writer.hpp"

namespace ddpsim {

using program::Slice;

Slice HookWriter::gradient(std::int32_t index) const {
  Slice place = bucket.slots[at(index)];
  place.buffer = data_.buffer;
  return place;
}

Slice HookWriter::memory_of(std::string_view name, program::Holds holds, DType type,
                            std::int64_t elements, program::Life life, program::Start start) {
  const std::int16_t named = memory_.label(name);
  for (const Slice& each : made_)
    if (memory_.job.buffers[each.buffer].name == named && each.count == elements) return each;
  return made_.emplace_back(memory_.add(name, bucket.index, holds, type, elements, life, start));
}

Slice HookWriter::gathered(std::string_view name, const Slice& each) {
  return memory_of(name, program::Holds::gathered, type_of(each), call.ranks * each.count,
                   program::Life::job, program::Start::zeros);
}

void HookWriter::add_view(std::string_view name, const Slice& of, program::Start start) {
  const program::Buffer whole = memory_.job.buffers[of.buffer];
  memory_.add(name, bucket.index, whole.holds, whole.type, of.count, whole.life, start);
  memory_.job.buffers.back().inside = of;
}

std::int16_t HookWriter::mean_over(int ranks) const {
  if (ranks <= 1) return program::nowhere;
  return call.communicator(ranks < call.ranks ? ranks : 0);
}

HookTask& HookWriter::add(std::string_view label, const Work& work, const program::Action& action) {
  return tasks.emplace_back(HookTask{.label = label, .work = work, .action = action});
}

HookTask& HookWriter::kernel(std::string_view label, Operation operation, Bytes traffic,
                             const program::Action& action, int launches) {
  return add(label, moving(operation, traffic, Caller::python_loop, launches), action);
}

HookTask& HookWriter::pack(std::string_view label, Bytes traffic, const std::vector<Slice>& to,
                           const std::vector<Slice>& from, program::Pack how, int launches) {
  how.to = list(to);
  how.from = list(from);
  return kernel(label, Operation::pack, traffic, how, launches);
}

HookTask& HookWriter::collective(std::string_view label, Operation operation,
                                 const program::Collective& what) {
  Work work;
  work.operation = operation;
  work.payload = bytes_of(what.from);
  return add(label, work, what);
}

HookTask& HookWriter::all_reduce(std::string_view label, const Slice& slice) {
  return collective(label, Operation::all_reduce,
                    {.reduction = program::Reduction::sum, .from = slice, .to = slice});
}

HookTask& HookWriter::all_gather(std::string_view label, const Slice& from, const Slice& to) {
  return collective(label, Operation::all_gather,
                    {.what = program::Collectives::all_gather, .from = from, .to = to});
}

void HookWriter::divide(std::string_view label, const Slice& slice, int ranks) {
  kernel(label, Operation::divide, 2 * bytes_of(slice),
         program::Scale{.to = slice, .from = slice, .mean_over = mean_over(ranks)});
}

HookTask& HookWriter::update() {
  Work work;
  work.operation = Operation::optimizer;
  work.optimizer_share = bucket.optimizer_share;
  return add("optimizer", work, bucket.update);
}

void HookWriter::synchronize() {
  if (call.synchronous) return;
  Work work;
  work.operation = Operation::synchronize;
  add("synchronize", work, program::Wait{});
}

/// One copy serves for every type, one after the other; its memory is of the last of them.
void HookWriter::cast(DType type) {
  const Slice from = data_;
  const Bytes read = bytes_of(from);
  data_ = buffer("narrow", type, bucket.data.count);
  memory_.job.buffers[data_.buffer].type = type;
  kernel("cast to wire", Operation::cast, read + bytes_of(data_),
         program::Cast{.to = data_, .from = from});
}

void HookWriter::cast_back() {
  if (type() == type_of(bucket.data)) return;
  const Slice from = data_;
  data_ = bucket.data;
  kernel("cast back", Operation::cast, bytes_of(from) + bytes_of(data_),
         program::Cast{.to = data_, .from = from});
}

}  // namespace ddpsim
