#include "model/parallel/policy/fsdp_reduce.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/parallel/policy/gradient_divisors.hpp"
#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {

using program::Slice;

bool replicates(const StepBuilder& step) {
  return step.training.replicate > 1;
}
StepStream behind_sums(const StepBuilder& step) {
  return replicates(step) ? StepStream::replicate : StepStream::scatter;
}

void FsdpReductions::find_upcasts(StepBuilder& step, const std::vector<StepUnit>& units) {
  if (!step.training.no_sync || step.training.micro_batches == 1) return;
  const auto upcasts = [](const StepUnit& unit) {
    return !unit.reduced.empty() && unit.sent != unit.whole;
  };
  upcasts_ = std::ranges::any_of(units, upcasts);
  if (!upcasts_) return;
  for (const StepUnit& unit : units)
    if (!unit.reduced.empty() && !upcasts(unit))
      check(Refusal{"training.mp_policy",
                    fmt::format("gradients of {} come in reduce_dtype, and those of other units do "
                                "not: with no_sync that is not modelled; write param_dtype too",
                                name_of(step, unit)),
                    {}});
  added_up_.resize(step.works.parameters());
  for (const StepUnit& unit : units)
    for (const std::int32_t each : unit.reduced)
      added_up_[at(each)] =
          step.writer.memory.add("added up", each, program::Holds::gradient, unit.sent,
                                 step.memory.elements(each), program::Life::held);
}

void FsdpReductions::upcast(StepBuilder& step, const StepUnit& unit) {
  const Bytes both = size_of(unit.whole) + size_of(unit.sent);
  for (const std::int32_t each : unit.reduced) {
    const Slice gradient = step.memory.where(each);
    step.writer.comes(added_up_[at(each)], StepStream::compute);
    step.writer.kernel_task(
        Operation::cast, moving(Operation::cast, gradient.count * both, Caller::python_loop),
        program::Cast{.to = added_up_[at(each)], .from = gradient}, {.parameter = each});
    step.writer.goes(gradient, StepStream::compute);
  }
}

void FsdpReductions::add_up(StepBuilder& step, const StepUnit& unit) {
  const Bytes all = size_of(unit.whole) + 2 * size_of(unit.sent);
  for (const std::int32_t each : unit.reduced) {
    const Slice gradient = step.memory.where(each), sum = added_up_[at(each)];
    step.writer.kernel_task(
        Operation::accumulate,
        moving(Operation::accumulate, gradient.count * all, Caller::python_loop),
        program::Combine{.to = sum, .left = sum, .right = gradient}, {.parameter = each});
    step.writer.goes(gradient, StepStream::compute);
  }
}

void FsdpReductions::reduce_scatter(StepBuilder& step, StepUnit& unit) {
  StepWriter& writer = step.writer;
  wait_for_oldest_inputs(step);
  pack(step, unit);
  const bool sums = step.training.sums_before_all_reduce();
  const bool is_last = writer.micro_batch + 1 == step.training.micro_batches;
  const bool adds = !sums && writer.micro_batch > 0 && unit.partial.count > 0;
  const Slice result = adds ? unit.partial : unit.gradient;
  Slice received = unit.received.empty() ? result : unit.received;
  if (sums && !is_last && writer.micro_batch == 0) received = unit.summed;
  if (sums && !is_last && writer.micro_batch > 0 && unit.received.empty()) received = unit.partial;
  const bool is_received = received.buffer == unit.received.buffer && !unit.received.empty();
  const bool divides = unit.sent == DType::fp16;
  // Of other types the reduce-scatter makes the mean.
  const GradientDivisors divisors =
      divides ? gradient_divisors(writer.device.ranks) : GradientDivisors{};
  last_scattered_ = packed_ = writer.last_kernel;
  const bool offloads = !unit.gradient_on_host.empty();
  if (offloads && is_last) writer.comes(unit.gradient, StepStream::scatter);
  if (is_received) writer.comes(unit.received, StepStream::scatter);
  divide(step, unit, unit.scattered, divisors.before, StepStream::scatter);
  scatter(step, unit, received, divides);
  if (sums && writer.micro_batch > 0) add_to_sum(step, unit, received);
  if (sums && !is_last) {
    if (is_received) writer.goes(unit.received, StepStream::scatter);
    return;
  }
  if (replicates(step)) all_reduce(step, unit, received, divides);
  divide(step, unit, received, divisors.behind, behind_sums(step));
  if (!unit.received.empty()) {
    behind(step, behind_sums(step),
           moving(Operation::cast, result.count * (size_of(unit.sent) + size_of(unit.kept))),
           program::Cast{.to = result, .from = unit.received},
           origin_of(step, unit, "reduce-scatter cast"));
    // F55: an all-reduce's memory is held until backward has ended.
    if (replicates(step))
      reduced_.push_back(unit.received);
    else
      writer.goes(unit.received, StepStream::scatter);
  }
  // What an earlier micro-batch left is added to.
  if (adds)
    behind(step, behind_sums(step),
           moving(Operation::accumulate, 3 * unit.gradient.count * size_of(unit.kept)),
           program::Combine{.to = unit.gradient, .left = unit.gradient, .right = unit.partial},
           {.group = unit.number});
  if (offloads) copy_to_host(step, unit);
}

/// F57: what one replica has of earlier micro-batches and of this one.
void FsdpReductions::add_to_sum(StepBuilder& step, const StepUnit& unit, const Slice& received) {
  const bool is_last = step.writer.micro_batch + 1 == step.training.micro_batches;
  behind(step, StepStream::scatter,
         moving(Operation::accumulate, 3 * received.count * size_of(unit.sent)),
         program::Combine{
             .to = is_last ? received : unit.summed, .left = unit.summed, .right = received},
         {.group = unit.number});
}

/// F67: each gradient by a copy of its own, for which the host waits when backward has ended.
void FsdpReductions::copy_to_host(StepBuilder& step, const StepUnit& unit) {
  for (const std::int32_t each : unit.reduced) {
    const Slice to = step.memory.gradient_now(each);
    Slice from = to;
    from.buffer = unit.gradient.buffer;
    behind(step, behind_sums(step),
           copy_beside_host(step, Operation::copy_to_host, to.count, unit.kept),
           program::Move{.to = to, .from = from}, origin_of(step, unit, "gradient to the host"));
  }
  step.writer.goes(unit.gradient, StepStream::scatter);
  copied_ = last_scattered_;
}

/// F36.
void FsdpReductions::wait_for_oldest_inputs(StepBuilder& step) {
  const auto most = static_cast<std::size_t>(step.training.reduce_scatter_max_input_buffers);
  while (inputs_.size() >= most) {
    step.writer.await(scattering_.front(), inputs_.front()->number);
    step.writer.goes(inputs_.front()->scattered, StepStream::compute);
    inputs_.pop_front();
    scattering_.pop_front();
  }
}

void FsdpReductions::pack(StepBuilder& step, const StepUnit& unit) {
  StepWriter& writer = step.writer;
  writer.comes(unit.scattered, StepStream::compute);
  std::vector<Slice> gradients;
  for (const std::int32_t each : unit.reduced)
    gradients.push_back(upcasts_ ? added_up_[at(each)] : step.memory.where(each));
  program::Chunk chunk;
  chunk.to = unit.scattered;
  chunk.places = unit.scatter_places;
  chunk.from = writer.memory.list(gradients);
  chunk.parts = ranks_;
  const Bytes sent = unit.scattered.count * size_of(unit.sent);
  const Bytes read = unit.scattered.count * size_of(upcasts_ ? unit.sent : unit.whole);
  writer.kernel_task(Operation::pack, moving(Operation::pack, read + sent), chunk,
                     origin_of(step, unit, "reduce-scatter copy-in"));
  for (const Slice& each : gradients) writer.goes(each, StepStream::compute);
}

void FsdpReductions::scatter(StepBuilder& step, StepUnit& unit, const Slice& received,
                             bool divides) {
  StepWriter& writer = step.writer;
  StepWriter::Sending sending;
  sending.stream = stream_of_shards(step, StepStream::scatter);
  sending.work.operation = Operation::reduce_scatter;
  sending.work.payload = unit.scattered.count * size_of(unit.sent);
  sending.work.handed_over = !writer.device.synchronous;
  sending.work.communicator = queue_of_scatters(step);
  sending.work.group = group_;
  sending.what.what = program::Collectives::reduce_scatter;
  sending.what.reduction = divides ? program::Reduction::sum : program::Reduction::mean;
  sending.what.from = unit.scattered;
  sending.what.to = received;
  sending.of.group = unit.number;
  sending.input = writer.device.synchronous ? writer.last_kernel : last_scattered_;
  sending.ready = packed_;
  last_scattered_ = writer.send(sending);
  inputs_.push_back(&unit);
  scattering_.push_back(last_scattered_);
  if (writer.device.synchronous) writer.await(last_scattered_, unit.number);
}

/// F55: the sum of all replicas' parts, or their mean.
void FsdpReductions::all_reduce(StepBuilder& step, const StepUnit& unit, const Slice& part,
                                bool divides) {
  StepWriter& writer = step.writer;
  StepWriter::Sending sending;
  sending.stream = stream_of_shards(step, StepStream::replicate);
  sending.work.payload = part.count * size_of(unit.sent);
  sending.work.operation = Operation::all_reduce;
  sending.work.handed_over = !writer.device.synchronous;
  sending.work.communicator = queue_of_replicas(step);
  sending.work.group = step.training.replicate;
  sending.work.stride = ranks_;
  sending.what.what = program::Collectives::all_reduce;
  sending.what.reduction = divides ? program::Reduction::sum : program::Reduction::mean;
  sending.what.from = sending.what.to = part;
  sending.of.group = unit.number;
  sending.input = sending.ready = last_scattered_;
  last_scattered_ = writer.send(sending);
  if (writer.device.synchronous) writer.await(last_scattered_, unit.number);
}

void FsdpReductions::divide(StepBuilder& step, const StepUnit& unit, const Slice& what,
                            double divisor, StepStream on) {
  if (divisor == 1) return;
  behind(step, on, moving(Operation::divide, 2 * what.count * size_of(unit.sent)),
         program::Scale{.to = what, .from = what, .factor = static_cast<float>(1 / divisor)},
         {.group = unit.number});
}

/// Behind what is there of this reduction.
void FsdpReductions::behind(StepBuilder& step, StepStream on, const Work& work,
                            const program::Action& action, const program::Origin& origin) {
  StepWriter& writer = step.writer;
  if (writer.device.synchronous) return writer.kernel_task(work.operation, work, action, origin);
  writer.add(work.operation, on, writer.number_of(work), action, origin);
  writer.depend(last_scattered_);
  last_scattered_ = writer.newest();
}

void FsdpReductions::end_backward(StepBuilder& step) {
  if (last_scattered_ != nobody) step.writer.await(last_scattered_);
  if (copied_ != nobody) step.writer.host_reads(copied_);
  last_scattered_ = copied_ = nobody;
  scattering_.clear();
  for (const Slice& each : reduced_) step.writer.goes(each, StepStream::scatter);
  reduced_.clear();
  while (!inputs_.empty()) {
    step.writer.goes(inputs_.front()->scattered, StepStream::compute);
    inputs_.pop_front();
  }
}

}  // namespace ddpsim
