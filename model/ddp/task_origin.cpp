#include "model/ddp/task_origin.hpp"

namespace ddpsim::program {
namespace {

Pass pass_of(Operation operation) {
  switch (traits_of(operation).pass) {
    case OperationTraits::Pass::forward:
      return Pass::forward;
    case OperationTraits::Pass::backward:
      return Pass::backward;
    case OperationTraits::Pass::optimizer:
      return Pass::optimizer;
    case OperationTraits::Pass::none:
      break;
  }
  return Pass::none;
}

Purpose purpose_of(Message message) {
  switch (message) {
    case Message::gradients:
    case Message::sparse_shape:
    case Message::sparse_indices:
    case Message::sparse_values:
      break;
    case Message::buffers:
      return Purpose::buffers;
    case Message::parameters:
      return Purpose::parameters;
    case Message::own:
      return Purpose::network;
    case Message::bucket_indices:
    case Message::bucket_lengths:
    case Message::used_map:
    case Message::active_ranks:
    case Message::early_end:
    case Message::buffer_source:
    case Message::will_sync:
      return Purpose::note;
  }
  return Purpose::gradients;
}

}  // namespace

const CommStep* step_of(const Schedule& schedule, const ddpsim::Task& task) {
  return task.step == nobody ? nullptr : &schedule.buckets[at(task.bucket)].steps[at(task.step)];
}

Origin origin_of(const Schedule& schedule, const ddpsim::Task& task) {
  const bool is_hooks = task.step != nobody && !is_collective(task.operation);
  Origin origin;
  origin.pass = pass_of(task.operation);
  origin.purpose = is_hooks ? Purpose::hook : purpose_of(schedule.work_of(task).message);
  origin.layer = task.layer;
  origin.kernel = task.kernel;
  origin.parameter = task.parameter;
  origin.group = task.bucket;
  origin.hook = task.user_hook;
  if (const CommStep* step = step_of(schedule, task);
      step != nullptr && step->tensor != nobody && task.operation != Operation::wait)
    origin.parameter = schedule.buckets[at(task.bucket)].parameters[at(step->tensor)];
  return origin;
}

}  // namespace ddpsim::program
