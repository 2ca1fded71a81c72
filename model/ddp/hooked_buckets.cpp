#include "model/ddp/hooked_buckets.hpp"

#include <algorithm>

#include "model/ddp/iteration.hpp"

namespace ddpsim {
namespace {

Stream aside_stream(const StepBuilder& step) {
  return step.writer.device.synchronous ? Stream::communication : Stream::aside;
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
  Schedule& schedule = step.writer.schedule;
  schedule.hook_state = state_of(training.comm_hook);
  schedule.hook_seed = training.comm_hook.powersgd.seed;
  CommHook now = training.comm_hook;
  if (before_zero_steps(training)) now.kind = CommHookKind::allreduce;
  for (Bucket& bucket : std::span(schedule.buckets).first(count)) {
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
  const std::vector<Bucket>& buckets = step.writer.schedule.buckets;
  return std::any_of(buckets.begin(), buckets.end(),
                     [](const Bucket& bucket) { return ddpsim::computes_aside(bucket.steps); });
}

void HookedBuckets::launch(StepBuilder& step, std::int32_t bucket) {
  // A hook without collectives has its result once the gradients are in the bucket.
  step.launched[at(bucket)] = before_ = step.writer.last_kernel;
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
    // DDP waits for parameters with the last bucket only.
    if (action == CommAction::send_parameters && !last) return;
    step.launched[at(bucket)] = before_;
    if (!aside_) step.writer.last_kernel = before_;
  }
}

/// Adds one step of the hook, which waits for the step before it.
void HookedBuckets::add_step(StepBuilder& step, std::int32_t bucket, std::size_t index) {
  ScheduleWriter& writer = step.writer;
  const CommStep part = step.bucket(bucket).steps[index];
  const bool collective = is_collective(part.operation);
  if (collective) {
    before_ = writer.input_of(Message::gradients, part.payload, before_, bucket);
    communicator_ = part.communicator;
  }
  Task& task = task_of(step, bucket, index, aside_, communicator_);
  if (part.action == CommAction::send_parameters ||
      (part.action == CommAction::update && is_zero_step(step.training.comm_hook.kind)))
    task.owner = owner_of_bucket(bucket, writer.device.ranks);
  if (before_ != nobody) writer.depend(task, before_);
  if (task.host_waits && writer.last_kernel != nobody && writer.last_kernel != before_)
    writer.depend(task, writer.last_kernel);
  before_ = collective ? writer.result_of(part.payload) : writer.newest();
  aside_ = aside_ || collective;
}

/// What zero_step does in the last bucket's hook, for all buckets: `update` is that step of theirs,
/// and the broadcast follows it.
void HookedBuckets::update_buckets(StepBuilder& step, std::size_t update) {
  ScheduleWriter& writer = step.writer;
  std::int32_t sent = nobody;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(count_); ++b) {
    const std::int32_t owner = owner_of_bucket(b, writer.device.ranks);
    writer.await(step.launched[at(b)]);
    Task& wait = writer.schedule.tasks.back();
    wait.bucket = b;
    wait.step = static_cast<std::int32_t>(update);
    wait.owner = owner;
    task_of(step, b, update, false, 0).owner = owner;
    writer.last_kernel = writer.newest();
    Task& broadcast = task_of(step, b, update + 1, false, 0);
    broadcast.owner = owner;
    writer.depend(broadcast, writer.last_kernel);
    sent = writer.newest();
  }
  writer.await(sent);  // and so for all before it
}

Task& HookedBuckets::task_of(StepBuilder& step, std::int32_t bucket, std::size_t index, bool aside,
                             std::uint8_t communicator) {
  ScheduleWriter& writer = step.writer;
  const CommStep& part = step.bucket(bucket).steps[index];
  const bool collective = is_collective(part.operation);
  const bool on_host = part.operation == Operation::synchronize;
  const Stream stream = on_host      ? Stream::host
                        : collective ? Stream::communication
                        : aside      ? aside_stream(step)
                                     : writer.kernel_stream;
  Work work = on_host ? Work{} : work_of(step, part, step.bucket(bucket).parameters, aside);
  work.operation = part.operation;
  if (stream == Stream::communication) work.communicator = communicator;
  work.handed_over = collective && !aside;
  Task& task = writer.add(part.operation, stream, writer.number_of(work));
  task.bucket = bucket;
  task.step = static_cast<std::int32_t>(index);
  task.host_waits = on_host;
  if (collective) task.gradient = step.gradient[at(bucket)];
  return task;
}

}  // namespace ddpsim
