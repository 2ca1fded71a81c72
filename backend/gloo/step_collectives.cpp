#include "backend/gloo/step_collectives.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace ddpsim {
namespace {

template <typename Value>
std::span<char> chars_of(std::span<Value> values) {
  return {reinterpret_cast<char*>(values.data()), values.size_bytes()};
}

}  // namespace

void StepCollectives::run(std::uint32_t index, std::uint32_t tag) {
  const Task& task = schedule_.tasks[index];
  if (task.step != nobody) return run_hook_step(task, tag);
  switch (collective_of(task.operation)) {
    case CollectiveOperation::all_gather:
      return gather_sparse(task, tag);
    case CollectiveOperation::all_reduce:
      return reduce(index, tag);
    case CollectiveOperation::broadcast:
      return broadcast(index, tag);
    case CollectiveOperation::reduce_scatter:  // check_schedule has refused it
      throw std::invalid_argument("the gloo backend has no reduce-scatter outside of comm hooks");
  }
}

void StepCollectives::reduce(std::uint32_t index, std::uint32_t tag) {
  const Task& task = schedule_.tasks[index];
  const Work& work = schedule_.work_of(task);
  const std::span<float> values = is_note(schedule_, task) ? memory_.note(index, work.payload)
                                  : work.message == Message::parameters
                                      ? memory_.average()
                                      : memory_.bucket(task.bucket);
  count(values.size_bytes());
  communicator_.all_reduce(values, tag);
}

void StepCollectives::broadcast(std::uint32_t index, std::uint32_t tag) {
  const Task& task = schedule_.tasks[index];
  const Work& work = schedule_.work_of(task);
  const bool note = is_note(schedule_, task);
  const std::span<char> bytes = note ? chars_of(memory_.note(index, work.payload))
                                     : memory_.buffers(task.kernel, work.payload);
  count(bytes.size());
  communicator_.broadcast(bytes, std::max(0, task.owner), tag);
}

/// One of the three parts of a sparse gradient.
void StepCollectives::gather_sparse(const Task& task, std::uint32_t tag) {
  const std::int32_t parameter =
      schedule_.buckets[static_cast<std::size_t>(task.bucket)].parameters.front();
  const Message message = schedule_.work_of(task).message;
  count(memory_.sparse().payload(parameter, message));
  memory_.sparse().gather(parameter, message, memory_.gradient(parameter), communicator_, tag);
}

void StepCollectives::run_hook_step(const Task& task, std::uint32_t tag) {
  const Bucket& bucket = schedule_.buckets[static_cast<std::size_t>(task.bucket)];
  const CommStep& step = bucket.steps[static_cast<std::size_t>(task.step)];
  if (meaning_of(step.action).target == HookPiece::parameters) {
    const std::span<float> values = memory_.parameters_of(task.bucket);
    count(values.size_bytes());
    return communicator_.broadcast(chars_of(values), task.owner, tag);
  }
  const std::span<float> values = memory_.bucket(task.bucket);
  const HookData::Payload payload = hook_data_->payload(bucket, task.bucket, step, values);
  count(payload.mine.size());
  communicate(task, step, payload, tag);
  hook_data_->arrived(bucket, task.bucket, step, values);
}

void StepCollectives::communicate(const Task& task, const CommStep& step,
                                  const HookData::Payload& payload, std::uint32_t tag) {
  switch (collective_of(task.operation)) {
    case CollectiveOperation::all_gather:
      return communicator_.all_gather(payload.mine, payload.all, tag);
    case CollectiveOperation::broadcast:
      return communicator_.broadcast(chars_of(payload.mine), 0, tag);
    case CollectiveOperation::reduce_scatter:
      return communicator_.ring_reduce(payload.type, payload.mine, everyone(), false, tag);
    case CollectiveOperation::all_reduce:
      if (step.group > 0)
        return communicator_.ring_reduce(payload.type, payload.mine, group_of(step.group), true,
                                         tag);
      return all_reduce(payload, tag);
  }
}

void StepCollectives::all_reduce(const HookData::Payload& payload, std::uint32_t tag) {
  if (size_of(payload.type) == Bytes{2})
    return communicator_.all_reduce(payload.type,
                                    std::span(reinterpret_cast<std::uint16_t*>(payload.mine.data()),
                                              payload.mine.size() / sizeof(std::uint16_t)),
                                    tag);
  communicator_.all_reduce(
      std::span(reinterpret_cast<float*>(payload.mine.data()), payload.mine.size() / sizeof(float)),
      tag);
}

std::vector<int> StepCollectives::everyone() const {
  std::vector<int> all(static_cast<std::size_t>(communicator_.ranks()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// This rank's group, of ranks next to each other; the last one may be smaller.
std::vector<int> StepCollectives::group_of(int size) const {
  const int first = communicator_.rank() / size * size;
  std::vector<int> members(static_cast<std::size_t>(std::min(size, communicator_.ranks() - first)));
  std::iota(members.begin(), members.end(), first);
  return members;
}

void StepCollectives::count(std::size_t bytes) {
  const std::lock_guard lock(counting_);
  ++sent_.collectives;
  sent_.payload += Bytes{static_cast<std::int64_t>(bytes)};
}

Sent StepCollectives::sent() const {
  const std::lock_guard lock(counting_);
  return sent_;
}

}  // namespace ddpsim
