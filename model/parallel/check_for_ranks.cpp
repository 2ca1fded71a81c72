#include "model/parallel/check_for_ranks.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Looks at the first rank's collectives: every rank has them.
template <typename Look>
void for_each_collective(const program::Job& job, Look look) {
  for (const program::Task& task : job.programs.front().tasks)
    if (const program::Deed& deed = job.deed_of(task);
        program::communicator_of(deed.action) != nobody)
      look(task, deed.origin);
}

/// Ranks without inputs that are asked more than once: what the others have added up by then would
/// be averaged with zeros.
void check_ranks_without_inputs(const program::Job& job, const Training& training) {
  if (!training.join || training.join->joined_ranks == 0) return;
  if (const auto ranks = static_cast<int>(job.ranks()); training.join->joined_ranks >= ranks)
    throw std::invalid_argument(
        fmt::format("joined_ranks is {}, of {} ranks: at least one rank must have inputs",
                    training.join->joined_ranks, ranks));
  int first = -1;
  for_each_collective(job, [&](const program::Task& task, const program::Origin& origin) {
    if (origin.group == nobody) return;
    if (first >= 0 && task.micro_batch != first)
      throw std::invalid_argument(
          "real ranks can run out of inputs only in steps that communicate once: set "
          "training.no_sync: true");
    first = task.micro_batch;
  });
}

/// Nobody waits for the delayed all-reduce, so only its place in the queue keeps it apart from the
/// optimizer that reads its gradients.
void check_delayed(const program::Job& job, const Training& training) {
  const bool together = std::ranges::any_of(
      job.communicators, [](const program::Communicator& each) { return each.at_once > 1; });
  if (training.wraps_buckets() && training.delayed && together)
    throw std::invalid_argument(
        "real ranks run delay_all_reduce only with one collective at a time (nothing waits for it, "
        "so the optimizer could read gradients that are being sent): set "
        "cluster.collectives_at_once: 1");
}

/// A user's hook must leave zeros in the rows of a sparse gradient that are not sent.
void check_sparse_hooks(const Training& training, const Workload& workload) {
  for (const UserHook& hook : training.hooks) {
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
void check_sparse_buckets(const program::Job& job) {
  std::set<std::int32_t> gathered;
  for_each_collective(job, [&](const program::Task& task, const program::Origin& origin) {
    if (job.works[task.work].message == Message::sparse_values &&
        !gathered.insert(origin.group).second)
      throw std::invalid_argument(
          "real ranks reduce sparse gradients only once a step: set training.no_sync: true");
  });
}

/// Of an all-gather of a part of all parameters the pieces do not lie one behind the other, as
/// ranks would put them.
void check_one_gather(const program::Job& job, const Training& training) {
  if (training.zero() == nullptr || training.zero()->variant != ZeroVariant::deepspeed ||
      training.strategy == Strategy::zero3)
    return;
  int gathers = 0;
  for_each_collective(job, [&](const program::Task& task, const program::Origin&) {
    gathers += job.works[task.work].operation == Operation::all_gather ? 1 : 0;
  });
  if (gathers > 1)
    throw std::invalid_argument(
        fmt::format("training.{0}.allgather_bucket_size below the number of parameters is "
                    "simulated only: for real, make it larger",
                    name_of(training.strategy)));
}

void check_not_simulated_only(const program::Job& job, const Training& training) {
  for_each_collective(job, [&](const program::Task& task, const program::Origin&) {
    const auto* collective = std::get_if<program::Collective>(&job.deed_of(task).action);
    if (collective != nullptr && training.average == Average::all_reduce &&
        collective->what == program::Collectives::all_reduce &&
        collective->reduction == program::Reduction::mean)
      throw std::invalid_argument(
          "training.average: all_reduce is simulated only: for real, take it out (gradients are "
          "divided then)");
  });
  for (const Work& work : job.works)
    if (work.message == Message::own)
      throw std::invalid_argument(
          "collectives of the model itself are simulated only: for real, take `collectives` out of "
          "its description");
  const auto casts = [](const Work& work) { return work.operation == Operation::cast; };
  if (training.has_policy() && std::ranges::any_of(job.works, casts))
    throw std::invalid_argument(
        "training.mp_policy is simulated only: for real, take it out (all is in workload.dtype "
        "then)");
  if (training.strategy == Strategy::flat && training.flat_views)
    throw std::invalid_argument(
        "training.flat_views: true is simulated only: for real, take it out (gradients are "
        "copied back then)");
}

}  // namespace

void check_for_ranks(const program::Job& job, const Training& training, const Workload& workload) {
  check_not_simulated_only(job, training);
  check_one_gather(job, training);
  check_sparse_hooks(training, workload);
  check_sparse_buckets(job);
  check_ranks_without_inputs(job, training);
  check_delayed(job, training);
}

}  // namespace ddpsim
