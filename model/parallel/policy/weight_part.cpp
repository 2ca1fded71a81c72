#include "model/parallel/policy/weight_part.hpp"

namespace ddpsim {

using program::Slice;

WeightPart lay_out_part(StepBuilder& step, const std::vector<std::int32_t>& parameters,
                        std::int32_t index, std::int64_t align, std::int64_t multiple,
                        const Slice& gradients) {
  const int ranks = step.writer.device.ranks;
  const std::int32_t first = parameters.front();
  WeightPart part;
  part.parameters = parameters;
  const auto together =
      step.memory.put_weights_together(parameters, index, align, multiple * ranks);
  part.places = together.places;
  part.all = together.all;
  const std::int16_t communicator = step.writer.communicator(0, 0);
  const std::int64_t length = part.all.count / ranks;
  part.mine = {part.all.buffer, communicator, 0, length};
  part.gradients = gradients;
  const DType kept = step.memory.kept_type(first);
  program::JobMemory& memory = step.writer.memory;
  const bool is_used =
      std::ranges::any_of(parameters, [&](std::int32_t each) { return !step.unused(each); });
  if (gradients.empty() && is_used)
    part.gradients = memory.add("part", index, program::Holds::gradient, kept, length,
                                program::Life::step, program::Start::zeros);
  if (kept != step.memory.type(first))
    part.masters = memory.add("masters", index, program::Holds::optimizer, kept, length,
                              program::Life::job, program::Start::zeros);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!step.unused(parameters[i]))
      step.memory.share_gradient(parameters[i], part.places[i].begin, part.gradients, communicator);
  return part;
}

void add_up_norm(StepBuilder& step) {
  step.writer.await(
      step.writer.announce(Operation::all_reduce, Message::norm, size_of(DType::fp32)));
}

void find_norm(StepBuilder& step, const std::vector<Slice>& gradients) {
  if (step.works.clips_gradients) return;  // its kernels do that
  Bytes read;
  for (const Slice& each : gradients) read += size_of(step.writer.memory.job, each);
  step.writer.kernel_task(Operation::optimizer, moving(Operation::optimizer, read),
                          program::Touch{});
  add_up_norm(step);
}

void cast_masters(StepBuilder& step, const WeightPart& part) {
  if (part.masters.empty()) return;
  const program::Job& job = step.writer.memory.job;
  Work work = moving(Operation::cast, size_of(job, part.masters) + size_of(job, part.mine));
  work.message = Message::parameters;
  step.writer.kernel_task(Operation::cast, work,
                          program::Cast{.to = part.mine, .from = part.masters});
}

std::int32_t gather_parts(StepBuilder& step, const Slice& all, const Slice& mine,
                          std::int32_t group, bool handed_over) {
  StepWriter::Sending sending;
  sending.work.operation = Operation::all_gather;
  sending.work.message = Message::parameters;
  sending.work.payload = size_of(step.writer.memory.job, mine);
  sending.work.handed_over = handed_over;
  sending.what.what = program::Collectives::all_gather;
  sending.what.from = sending.what.to = all;
  sending.of.group = group;
  sending.input = sending.ready = step.writer.last_kernel;
  return step.writer.send(sending);
}

}  // namespace ddpsim
