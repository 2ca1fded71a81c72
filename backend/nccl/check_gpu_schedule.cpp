#include "backend/nccl/check_gpu_schedule.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "backend/nccl/comm_hook/gpu_hook_data.hpp"
#include "model/schedule/simulated_only.hpp"

namespace ddpsim {
namespace {

/// One communicator, on the device, is one queue (rule R17).
void check_queue(const Schedule& schedule) {
  if (schedule.collectives_at_once > 1)
    throw std::invalid_argument(
        "NCCL runs one collective of a communicator at a time: take cluster.collectives_at_once "
        "out, or run on gloo");
  for (const Task& task : schedule.tasks) {
    if (task.stream == Stream::to_host)
      throw std::invalid_argument(
          "NCCL's collectives run on the devices: take cluster.through_host out; it is simulated "
          "only");
    if (schedule.work_of(task).communicator != 0)
      throw std::invalid_argument(
          "the nccl backend has one communicator: take communicator out of the comm hook's "
          "steps, or run on gloo");
  }
}

void check_messages(const Schedule& schedule) {
  if (schedule.ranks_without_inputs > 0)
    throw std::invalid_argument("ranks without inputs are run by the gloo backend only");
  for (const Task& task : schedule.tasks)
    if (const Message message = schedule.work_of(task).message;
        message == Message::parameters || message == Message::sparse_values)
      throw std::invalid_argument(fmt::format(
          "{} in simulation and by the gloo backend only",
          message == Message::parameters ? "models are averaged" : "sparse gradients are reduced"));
}

}  // namespace

void check_gpu_schedule(const Schedule& schedule) {
  for (const UserHook& hook : schedule.hooks)
    if (hook.kind != UserHookKind::scale && hook.kind != UserHookKind::record)
      throw std::invalid_argument(
          fmt::format("the nccl backend carries out scale and record hooks, not {}: take it out of "
                      "training.hooks, or run on gloo",
                      name_of(hook.kind)));
  check_not_simulated_only(schedule);
  GpuHookData::check(schedule);
  check_queue(schedule);
  check_messages(schedule);
}

}  // namespace ddpsim
