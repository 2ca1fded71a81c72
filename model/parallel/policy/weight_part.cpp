#include "model/parallel/policy/weight_part.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {

using program::Slice;

WeightPart lay_out_part(StepBuilder& step, const std::vector<std::int32_t>& parameters,
                        std::int32_t index, std::int64_t align, std::int64_t multiple,
                        const Slice& gradients) {
  const int ranks = step.writer.device.ranks;
  const std::int32_t first = parameters.front();
  for (const std::int32_t each : parameters)
    if (step.memory.kept_type(each) != step.memory.kept_type(first))
      check(Refusal{"training.strategy",
                    fmt::format("{} is {} and {} is {}: {} is modelled where all parameters are of "
                                "one type",
                                step.works.names[at(each)], name_of(step.memory.kept_type(each)),
                                step.works.names[at(first)], name_of(step.memory.kept_type(first)),
                                name_of(step.training.strategy)),
                    {}});
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

void check_parts(const StepBuilder& step) {
  const auto refuse_if = [](bool wrong, std::string reason) {
    if (wrong) check(Refusal{"training.strategy", std::move(reason), {}});
  };
  const std::string_view name = name_of(step.training.strategy);
  refuse_if(step.writer.device.through_host,
            fmt::format("{} is modelled where collectives run on the devices, not on the hosts: "
                        "take device.through_host out",
                        name));
  for (std::size_t i = 0; i < step.works.parameters(); ++i)
    refuse_if(step.works.gradients[i].sparse,
              fmt::format("the gradient of {} is sparse, and {} takes dense ones: take the "
                          "parameter's sparse: true out",
                          step.works.names[i].substr(0, 200), name));
  refuse_if(
      !step.training.hooks.empty(),
      fmt::format("hooks of your own are not modelled under {}: take training.hooks out", name));
  refuse_if(step.training.join.has_value(),
            fmt::format("{} has no join(): take training.join out", name));
}

void add_up_norm(StepBuilder& step) {
  step.writer.await(
      step.writer.announce(Operation::all_reduce, Message::norm, size_of(DType::fp32)));
}

void find_norm(StepBuilder& step, const std::vector<Slice>& gradients) {
  if (step.works.clips_gradients) return;  // its kernels do that
  Bytes read;
  for (const Slice& each : gradients)
    read += each.count * size_of(step.writer.memory.job.buffers[each.buffer].type);
  step.writer.kernel_task(Operation::optimizer, moving(Operation::optimizer, read),
                          program::Touch{});
  add_up_norm(step);
}

void cast_masters(StepBuilder& step, const WeightPart& part) {
  if (part.masters.empty()) return;
  const auto type = [&](const Slice& slice) {
    return size_of(step.writer.memory.job.buffers[slice.buffer].type);
  };
  Work work = moving(Operation::cast, part.masters.count * (type(part.masters) + type(part.mine)));
  work.message = Message::parameters;
  step.writer.kernel_task(Operation::cast, work,
                          program::Cast{.to = part.mine, .from = part.masters});
}

std::int32_t gather_parts(StepBuilder& step, const Slice& all, const Slice& mine,
                          std::int32_t group, bool handed_over) {
  StepWriter::Sending sending;
  sending.work.operation = Operation::all_gather;
  sending.work.message = Message::parameters;
  sending.work.payload = mine.count * size_of(step.writer.memory.job.buffers[mine.buffer].type);
  sending.work.handed_over = handed_over;
  sending.what.what = program::Collectives::all_gather;
  sending.what.from = sending.what.to = all;
  sending.of.group = group;
  sending.input = sending.ready = step.writer.last_kernel;
  return step.writer.send(sending);
}

}  // namespace ddpsim
