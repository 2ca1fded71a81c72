#include "model/parallel/policy/hooked_buckets.hpp"

#include <algorithm>

#include "model/parallel/policy/iteration.hpp"

namespace ddpsim {
namespace {

StepStream aside_stream(const StepBuilder& step) {
  return step.writer.device.synchronous ? StepStream::communication : StepStream::aside;
}

/// The share of the optimizer's work that belongs to these parameters, by their bytes.
double optimizer_share(const StepWorks& works, const std::vector<std::int32_t>& parameters) {
  Bytes mine;
  for (const std::int32_t index : parameters) mine += works.gradients[at(index)].size;
  return static_cast<double>(mine.count) / static_cast<double>(works.gradient_size.count);
}

/// A step of the hook, as work.
Work work_of(const StepBuilder& step, const CommStep& part,
             const std::vector<std::int32_t>& parameters, bool aside) {
  if (is_collective(part.operation)) {
    Work work;
    work.operation = part.operation;
    work.payload = part.payload;
    work.group = part.group;
    return work;
  }
  Work work = part.operation == Operation::optimizer
                  ? moving(Operation::optimizer, Bytes{})
                  : work_of(part.operation, part.kernel, Caller::python_loop);
  if (part.operation == Operation::optimizer)
    work.optimizer_share = optimizer_share(step.works, parameters);
  work.aside = aside;
  work.host = part.host;
  return work;
}

}  // namespace

void HookedBuckets::plan(StepBuilder& step, std::size_t count) {
  const Training& training = step.training;
  count_ = count;
  step.hook_state = state_of(training.comm_hook);
  step.hook_seed = training.comm_hook.powersgd.seed;
  CommHook now = training.comm_hook;
  if (before_zero_steps(training)) now.kind = CommHookKind::allreduce;
  for (Bucket& bucket : std::span(step.buckets).first(count)) {
    CommBucket seen;
    seen.type = stored_type(step.works.gradients[at(bucket.parameters.front())].dtype);
    for (const std::int32_t index : bucket.parameters)
      seen.gradients.push_back(step.works.matrices[at(index)]);
    bucket.steps =
        comm_steps(now, seen, step.works.device.ranks, step.works.ranks_per_node.largest(),
                   step.works.device.synchronous, training.iteration);
    bucket.low_rank = low_rank_matrices(now, seen);
    bucket.gradients = std::move(seen.gradients);
  }
}

bool HookedBuckets::computes_aside(const StepBuilder& step) const {
  if (step.training.comm_hook.kind == CommHookKind::zero_step) return false;  // behind the last
  return std::any_of(step.buckets.begin(), step.buckets.end(),
                     [](const Bucket& bucket) { return ddpsim::computes_aside(bucket.steps); });
}

void HookedBuckets::launch(StepBuilder& step, std::int32_t bucket) {
  // A hook without collectives has its result once the gradients are in the bucket.
  step.launched[at(bucket)] = before_ = step.writer.last_kernel;
  if (step.hooked[at(bucket)]) step.hooked[at(bucket)]->begin();
  aside_ = false;
  communicator_ = 0;
  const bool last = at(bucket) + 1 == count_;
  const std::size_t steps = step.bucket(bucket).steps.size();
  for (std::size_t s = 0; s < steps; ++s) {
    const CommAction action = step.bucket(bucket).steps[s].action;
    if (action == CommAction::update && step.training.comm_hook.kind == CommHookKind::zero_step) {
      if (last) update_buckets(step, s);
      return;
    }
    add_step(step, bucket, s);
    step.step_has(communicator_ == 0 ? "a comm hook has steps" : "there are several communicators");
    // DDP waits for parameters with the last bucket only.
    if (action == CommAction::send_parameters && !last) return;
    step.launched[at(bucket)] = before_;
    if (!aside_) step.writer.last_kernel = before_;
  }
}

/// Adds one step of the hook, which waits for the step before it.
void HookedBuckets::add_step(StepBuilder& step, std::int32_t bucket, std::size_t index) {
  StepWriter& writer = step.writer;
  const CommStep& part = step.bucket(bucket).steps[index];
  const bool is_owners =
      part.action == CommAction::send_parameters ||
      (part.action == CommAction::update && is_zero_step(step.training.comm_hook.kind));
  const std::int32_t owner = is_owners ? owner_of_bucket(bucket, writer.device.ranks) : nobody;
  if (is_collective(part.operation)) {
    communicator_ = part.communicator;
    before_ = send(step, bucket, part, {communicator_, !aside_, owner}, before_, bucket);
    aside_ = true;
    return;
  }
  compute(step, bucket, part, {communicator_, aside_, owner});
  if (before_ != nobody) writer.depend(before_);
  const bool host_waits = part.operation == Operation::synchronize;
  if (host_waits && writer.last_kernel != nobody && writer.last_kernel != before_)
    writer.depend(writer.last_kernel);
  before_ = writer.newest();
}

/// What zero_step does in the last bucket's hook, for all buckets: `update` is that step of theirs,
/// and the broadcast follows it.
void HookedBuckets::update_buckets(StepBuilder& step, std::size_t update) {
  StepWriter& writer = step.writer;
  std::int32_t sent = nobody;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(count_); ++b) {
    const std::int32_t owner = owner_of_bucket(b, writer.device.ranks);
    writer.await(step.launched[at(b)]);
    writer.deed().origin.group = b;
    writer.deed().origin.purpose = program::Purpose::hook;
    writer.leave_to(owner);
    const std::vector<CommStep>& steps = step.bucket(b).steps;
    compute(step, b, steps[update], {0, false, owner});
    writer.last_kernel = writer.newest();
    sent = send(step, b, steps[update + 1], {0, true, owner}, writer.last_kernel, nobody);
  }
  writer.await(sent);  // and so for all before it
}

/// Where a step of the hook comes from, for people.
program::Origin HookedBuckets::origin_of(StepBuilder& step, std::int32_t bucket,
                                         const CommStep& part) {
  program::Origin origin;
  origin.group = bucket;
  origin.label = step.writer.memory.label(name_of(part.action));
  if (part.tensor != nobody) origin.parameter = step.bucket(bucket).parameters[at(part.tensor)];
  if (!is_collective(part.operation)) origin.purpose = program::Purpose::hook;
  return origin;
}

/// `how.beside`: behind a collective.
void HookedBuckets::compute(StepBuilder& step, std::int32_t bucket, const CommStep& part,
                            const How& how) {
  StepWriter& writer = step.writer;
  const bool on_host = part.operation == Operation::synchronize;
  const StepStream stream = on_host      ? StepStream::host
                            : how.beside ? aside_stream(step)
                                         : writer.kernel_stream;
  Work work = on_host ? Work{} : work_of(step, part, step.bucket(bucket).parameters, how.beside);
  work.operation = part.operation;
  if (stream == StepStream::communication) work.communicator = how.communicator;
  program::HookedBucket& hook = *step.hooked[at(bucket)];
  const program::Origin origin = origin_of(step, bucket, part);
  writer.add(part.operation, stream, writer.number_of(work), hook.action_of(part), origin);
  if (how.owner != nobody) writer.leave_to(how.owner);
  writer.everybody_does();
  if (part.operation == Operation::pack)
    if (const auto seed = hook.seed_beside(part)) writer.follow(*seed);
  step.take_from_readers(bucket);
}

/// `how.beside`: beside the kernels of the backward pass, whose hook issues it.
std::int32_t HookedBuckets::send(StepBuilder& step, std::int32_t bucket, const CommStep& part,
                                 const How& how, std::int32_t input, std::int32_t copied_for) {
  StepWriter::Sending sending;
  sending.work = work_of(step, part, {}, false);
  sending.work.communicator = how.communicator;
  sending.work.handed_over = how.beside;
  sending.what = program::HookedBucket::collective_of(part);
  sending.what.root = static_cast<std::int16_t>(std::max(how.owner, 0));
  const program::HookedBucket::Ends ends = step.hooked[at(bucket)]->ends_of(part);
  sending.what.from = ends.from;
  sending.what.to = ends.to;
  sending.of = origin_of(step, bucket, part);
  sending.copied_for = copied_for;
  sending.input = input;
  sending.ready = step.gradient[at(bucket)];
  const std::int32_t result = step.writer.send(sending);
  step.take_from_readers(bucket);
  return result;
}

}  // namespace ddpsim
