#include "model/parallel/policy/fsdp1_reduce.hpp"

#include <vector>

#include "model/parallel/policy/fsdp_gather.hpp"
#include "model/parallel/policy/fsdp_reduce.hpp"
#include "model/parallel/policy/gradient_divisors.hpp"

namespace ddpsim {
using program::Slice;

void FlatReductions::put_together(StepBuilder& step, const FlatUnit& unit) {
  StepWriter& writer = step.writer;
  const bool adds = writer.micro_batch > 0 && !unit.later.empty();
  const Slice& flat = adds ? unit.later : unit.gradient;
  writer.comes(flat, StepStream::compute);
  std::vector<Slice> from, to;
  for (std::size_t i = 0; i < unit.used.size(); ++i) {
    from.push_back(step.memory.where(unit.used[i]));
    to.push_back(unit.places[i]);
    to.back().buffer = flat.buffer;
  }
  const program::Operands written = writer.memory.list(to);
  const Bytes size = flat.count * size_of(unit.whole_type);
  writer.kernel_task(Operation::concatenate, moving(Operation::concatenate, 2 * size),
                     program::Pack{.to = written, .from = writer.memory.list(from)},
                     origin_of(step, unit, "gradients into one"));
  for (const Slice& each : from) writer.goes(each, StepStream::compute);
  if (!adds) return;
  writer.kernel_task(
      Operation::accumulate, moving(Operation::accumulate, 3 * size),
      program::Combine{.to = unit.gradient, .left = unit.gradient, .right = unit.later},
      {.group = unit.number});
  writer.goes(unit.later, StepStream::compute);
}

void FlatReductions::reduce(StepBuilder& step, const FlatUnit& unit) {
  StepWriter& writer = step.writer;
  const GradientDivisors divisors = gradient_divisors(writer.device.ranks);
  const StepStream behind = behind_sums(step);
  const Bytes sent = size_of(unit.sent), kept = size_of(unit.kept);
  last_ = gathered_ = writer.last_kernel;
  Slice input = unit.gradient;
  if (!unit.cast_gradient.empty()) {
    writer.comes(unit.cast_gradient, StepStream::scatter);
    kernel(step, StepStream::scatter,
           moving(Operation::cast, input.count * (size_of(unit.whole_type) + sent)),
           program::Cast{.to = unit.cast_gradient, .from = input}, unit, "reduce-scatter cast");
    input = unit.cast_gradient;
  }
  if (!unit.padded.empty()) {
    writer.comes(unit.padded, StepStream::scatter);
    const program::Operands to = writer.memory.list({unit.padded});
    kernel(step, StepStream::scatter,
           moving(Operation::pack, (input.count + unit.padded.count) * sent),
           program::Pack{.to = to, .from = writer.memory.list({input}), .zeros_behind = true}, unit,
           "reduce-scatter padding");
    input = unit.padded;
  }
  const bool adds = writer.micro_batch > 0 && !unit.later_part.empty();
  const Slice result = adds ? unit.later_part : unit.part_gradient;
  if (adds) writer.comes(unit.later_part, StepStream::scatter);
  const bool casts = !unit.received.empty();
  const Slice received = casts ? unit.received : result;
  if (casts) writer.comes(unit.received, StepStream::scatter);
  divide(step, StepStream::scatter, unit, input, divisors.before);
  scatter(step, unit, input, received);
  if (replicates(step)) all_reduce(step, unit, received);
  divide(step, behind, unit, received, divisors.behind);
  if (casts) {
    kernel(step, behind, moving(Operation::cast, result.count * (sent + kept)),
           program::Cast{.to = result, .from = received}, unit, "reduce-scatter cast");
    writer.goes(unit.received, behind);
  }
  if (adds) {
    kernel(step, behind, moving(Operation::accumulate, 3 * result.count * kept),
           program::Combine{
               .to = unit.part_gradient, .left = unit.part_gradient, .right = unit.later_part},
           unit, "");
    writer.goes(unit.later_part, behind);
  }
  for (const Slice& each : {unit.gradient, unit.cast_gradient, unit.padded})
    if (!each.empty()) writer.goes(each, StepStream::scatter);
}

void FlatReductions::kernel(StepBuilder& step, StepStream on, const Work& work,
                            const program::Action& action, const FlatUnit& unit,
                            std::string_view label) {
  StepWriter& writer = step.writer;
  const program::Origin origin = origin_of(step, unit, label);
  if (writer.device.synchronous) return writer.kernel_task(work.operation, work, action, origin);
  writer.add(work.operation, on, writer.number_of(work), action, origin);
  writer.depend(last_);
  last_ = writer.newest();
  (on == StepStream::scatter ? scattered_ : replicated_) = last_;
}

void FlatReductions::divide(StepBuilder& step, StepStream on, const FlatUnit& unit,
                            const Slice& what, double divisor) {
  if (divisor == 1) return;
  kernel(step, on, moving(Operation::divide, 2 * what.count * size_of(unit.sent)),
         program::Scale{.to = what, .from = what, .factor = static_cast<float>(1 / divisor)}, unit,
         "");
}

void FlatReductions::scatter(StepBuilder& step, const FlatUnit& unit, const Slice& from,
                             const Slice& to) {
  StepWriter& writer = step.writer;
  StepWriter::Sending sending;
  sending.stream = stream_of_shards(step, StepStream::scatter);
  sending.work.operation = Operation::reduce_scatter;
  sending.work.payload = from.count * size_of(unit.sent);
  sending.work.handed_over = true;
  sending.work.group = group_;
  sending.what.what = program::Collectives::reduce_scatter;
  sending.what.reduction = program::Reduction::sum;
  sending.what.from = from;
  sending.what.to = to;
  sending.of.group = unit.number;
  sending.input = writer.device.synchronous ? writer.last_kernel : last_;
  sending.ready = gathered_;
  last_ = scattered_ = writer.send(sending);
  if (writer.device.synchronous) writer.await(last_, unit.number);
}

void FlatReductions::all_reduce(StepBuilder& step, const FlatUnit& unit, const Slice& part) {
  StepWriter& writer = step.writer;
  StepWriter::Sending sending;
  sending.stream = stream_of_shards(step, StepStream::replicate);
  sending.work.operation = Operation::all_reduce;
  sending.work.payload = part.count * size_of(unit.sent);
  sending.work.handed_over = true;
  sending.work.communicator = queue_of_replicas(step);
  sending.work.group = step.training.replicate;
  sending.work.stride = ranks_;
  sending.what.what = program::Collectives::all_reduce;
  sending.what.reduction = program::Reduction::sum;
  sending.what.from = sending.what.to = part;
  sending.of.group = unit.number;
  sending.input = sending.ready = last_;
  last_ = replicated_ = writer.send(sending);
  if (writer.device.synchronous) writer.await(last_, unit.number);
}

void FlatReductions::end_backward(StepBuilder& step) {
  for (std::int32_t* each : {&scattered_, &replicated_}) {
    if (*each != nobody && !step.writer.device.synchronous) step.writer.await(*each);
    *each = nobody;
  }
}

}  // namespace ddpsim
