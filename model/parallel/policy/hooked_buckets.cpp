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

}  // namespace

void HookedBuckets::plan(StepBuilder& step, std::size_t count) {
  hook_ = step.training.comm_hook;
  step.writer.memory.job.hook = state_of(hook_);
  step.writer.memory.job.seed = hook_.powersgd.seed;
  if (before_zero_steps(step.training)) hook_.kind = CommHookKind::allreduce;
  tasks_.resize(count);
  for (Bucket& bucket : std::span(step.buckets).first(count))
    bucket.has_hook = works_on_buckets(hook_);
}

void HookedBuckets::lay_out(StepBuilder& step, std::int32_t index) {
  const Bucket& bucket = step.bucket(index);
  StepWriter& writer = step.writer;
  HookedBucket seen{
      .index = index, .data = step.memory.bucket(index), .slots = step.memory.slots(bucket)};
  for (const std::int32_t each : bucket.parameters)
    seen.matrices.push_back(step.works.matrices[at(each)]);
  if (updates_parameters(hook_.kind)) {
    step.updates_in_backward = true;
    seen.parameters = step.memory.put_together(bucket, index);
    seen.update = step.memory.update(bucket.parameters, seen.slots);
    seen.optimizer_share = optimizer_share(step.works, bucket.parameters);
  }
  const auto communicator = [&writer](std::int32_t size) {
    writer.communicator(0, 0);  // DDP's own comes before any other
    return writer.communicator(0, size);
  };
  tasks_[at(index)] = tasks_of(writer.memory, hook_, seen,
                               {.ranks = writer.device.ranks,
                                .ranks_per_node = step.works.ranks_per_node.largest(),
                                .synchronous = writer.device.synchronous,
                                .iteration = step.training.iteration,
                                .communicator = communicator});
  if (!tasks_[at(index)].empty()) communicator(0);
}

bool HookedBuckets::computes_aside() const {
  return std::ranges::any_of(tasks_, [](const auto& each) { return ddpsim::computes_aside(each); });
}

void HookedBuckets::launch(StepBuilder& step, std::int32_t bucket) {
  // A hook without collectives has its result once the gradients are in the bucket.
  step.launched[at(bucket)] = before_ = step.writer.last_kernel;
  aside_ = false;
  communicator_ = 0;
  const bool last = at(bucket) + 1 == tasks_.size();
  for (const HookTask& task : tasks_[at(bucket)]) {
    if (task.in_last) {
      if (last) add_last(step);
      return;
    }
    add(step, bucket, task);
    step.step_has(communicator_ == 0 ? "a comm hook has steps" : "there are several communicators");
    // DDP waits for parameters with the last bucket only.
    if (task.is_owners && task.is_collective() && !last) return;
    step.launched[at(bucket)] = before_;
    if (!aside_) step.writer.last_kernel = before_;
  }
}

/// Adds one task of the hook, which waits for the one before it.
void HookedBuckets::add(StepBuilder& step, std::int32_t bucket, const HookTask& task) {
  StepWriter& writer = step.writer;
  const std::int32_t owner = task.is_owners ? owner_of_bucket(bucket, writer.device.ranks) : nobody;
  if (task.is_collective()) {
    communicator_ = task.work.communicator;
    before_ = send(step, bucket, task, {communicator_, !aside_, owner}, before_, bucket);
    aside_ = true;
    return;
  }
  compute(step, bucket, task, {communicator_, aside_, owner});
  if (before_ != nobody) writer.depend(before_);
  const bool host_waits = task.work.operation == Operation::synchronize;
  if (host_waits && writer.last_kernel != nobody && writer.last_kernel != before_)
    writer.depend(writer.last_kernel);
  before_ = writer.newest();
}

/// What zero_step does in the last bucket's hook, for all buckets.
void HookedBuckets::add_last(StepBuilder& step) {
  StepWriter& writer = step.writer;
  std::int32_t sent = nobody;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(tasks_.size()); ++b) {
    const std::int32_t owner = owner_of_bucket(b, writer.device.ranks);
    writer.await(step.launched[at(b)]);
    writer.deed().origin.group = b;
    writer.deed().origin.purpose = program::Purpose::hook;
    writer.leave_to(owner);
    for (const HookTask& task : tasks_[at(b)]) {
      if (!task.in_last) continue;
      if (task.is_collective()) {
        sent = send(step, b, task, {0, true, owner}, writer.last_kernel, nobody);
      } else {
        compute(step, b, task, {0, false, owner});
        writer.last_kernel = writer.newest();
      }
    }
  }
  writer.await(sent);  // and so for all before it
}

/// Where a task of the hook comes from, for people.
program::Origin HookedBuckets::origin_of(StepBuilder& step, std::int32_t bucket,
                                         const HookTask& task) {
  program::Origin origin;
  origin.group = bucket;
  origin.label = step.writer.memory.label(task.label);
  if (task.gradient != nobody) origin.parameter = step.bucket(bucket).parameters[at(task.gradient)];
  if (!task.is_collective()) origin.purpose = program::Purpose::hook;
  return origin;
}

/// `how.beside`: behind a collective.
void HookedBuckets::compute(StepBuilder& step, std::int32_t bucket, const HookTask& task,
                            const How& how) {
  StepWriter& writer = step.writer;
  const bool on_host = task.work.operation == Operation::synchronize;
  const StepStream stream = on_host      ? StepStream::host
                            : how.beside ? aside_stream(step)
                                         : writer.kernel_stream;
  Work work = task.work;
  work.aside = how.beside && !on_host;
  if (stream == StepStream::communication) work.communicator = how.communicator;
  writer.add(work.operation, stream, writer.number_of(work), task.action,
             origin_of(step, bucket, task));
  if (how.owner != nobody) writer.leave_to(how.owner);
  writer.everybody_does();
  if (task.then) writer.follow(*task.then);
  step.take_from_readers(bucket);
}

/// `how.beside`: beside the kernels of the backward pass, whose hook issues it.
std::int32_t HookedBuckets::send(StepBuilder& step, std::int32_t bucket, const HookTask& task,
                                 const How& how, std::int32_t input, std::int32_t copied_for) {
  StepWriter::Sending sending;
  sending.work = task.work;
  sending.work.handed_over = how.beside;
  sending.what = std::get<program::Collective>(task.action);
  sending.what.root = static_cast<std::int16_t>(std::max(how.owner, 0));
  sending.of = origin_of(step, bucket, task);
  sending.copied_for = copied_for;
  sending.input = input;
  sending.ready = step.gradient[at(bucket)];
  const std::int32_t result = step.writer.send(sending);
  step.take_from_readers(bucket);
  return result;
}

}  // namespace ddpsim
