#include "model/ddp/check_for_ranks.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "model/schedule/simulated_only.hpp"

namespace ddpsim {
namespace {

/// Ranks without inputs that are asked more than once: what the others have added up by then would
/// be averaged with zeros.
void check_ranks_without_inputs(const Schedule& schedule) {
  if (schedule.ranks_without_inputs == 0) return;
  if (schedule.ranks_without_inputs >= schedule.ranks)
    throw std::invalid_argument(
        fmt::format("joined_ranks is {}, of {} ranks: at least one rank must have inputs",
                    schedule.ranks_without_inputs, schedule.ranks));
  int first = -1;
  for (const Task& task : schedule.tasks) {
    if (!is_collective(task.operation) || task.bucket == nobody) continue;
    if (first >= 0 && task.micro_batch != first)
      throw std::invalid_argument(
          "real ranks can run out of inputs only in steps that communicate once: set "
          "training.no_sync: true");
    first = task.micro_batch;
  }
}

/// Nobody waits for the delayed all-reduce, so only its place in the queue keeps it apart from the
/// optimizer that reads its gradients.
void check_delayed(const Schedule& schedule) {
  const bool delayed = std::any_of(schedule.buckets.begin(), schedule.buckets.end(),
                                   [](const Bucket& bucket) { return bucket.delayed; });
  if (delayed && schedule.collectives_at_once > 1)
    throw std::invalid_argument(
        "real ranks run delay_all_reduce only with one collective at a time (nothing waits for it, "
        "so the optimizer could read gradients that are being sent): set "
        "cluster.collectives_at_once: 1");
}

/// A user's hook must leave zeros in the rows of a sparse gradient that are not sent.
void check_sparse_hooks(const Schedule& schedule, const Workload& workload) {
  for (const UserHook& hook : schedule.hooks) {
    if (hook.kind != UserHookKind::noise && hook.kind != UserHookKind::decay &&
        hook.kind != UserHookKind::plugin)
      continue;
    for (const auto& group : hook.groups)
      for (const std::int32_t p : group)
        if (workload.parameters[at(p)].sparse)
          throw std::invalid_argument(fmt::format(
              "a {} hook writes all of a gradient, and that of {} is sparse: on real ranks only "
              "clip, scale and record hooks work on sparse gradients",
              name_of(hook.kind), workload.parameters[at(p)].name));
  }
}

/// After a first synchronised micro-batch the rows of all ranks are there, and a second would send
/// them.
void check_sparse_buckets(const Schedule& schedule) {
  std::set<std::int32_t> gathered;
  for (const Task& task : schedule.tasks)
    if (is_collective(task.operation) && schedule.work_of(task).message == Message::sparse_values &&
        !gathered.insert(task.bucket).second)
      throw std::invalid_argument(
          "real ranks reduce sparse gradients only once a step: set training.no_sync: true");
}

}  // namespace

void check_for_ranks(const Schedule& schedule, const Workload& workload) {
  check_not_simulated_only(schedule);
  check_sparse_hooks(schedule, workload);
  check_sparse_buckets(schedule);
  check_ranks_without_inputs(schedule);
  check_delayed(schedule);
}

}  // namespace ddpsim
