#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/step_costs.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Writes the tasks of one step, priced by `costs`, in the order in which the host issues them.
///
/// Streams keep that order by themselves; what crosses streams is written as a dependency. A task is
/// named by its place in the schedule; a Task& holds until the next task is added.
/// Throws std::invalid_argument beyond `most_tasks`.
class TaskWriter {
 protected:
  static constexpr std::size_t most_tasks = 10'000'000;

  explicit TaskWriter(const StepCosts& costs)
      : costs_(costs), kernel_stream_(costs.synchronous ? Stream::host : Stream::compute) {}

  Task& add(Operation operation, Stream stream);
  void depend(Task& task, std::int32_t on);
  std::int32_t newest() const { return static_cast<std::int32_t>(schedule_.tasks.size()) - 1; }

  Task& host_task(Operation operation, Duration host);
  Task& kernel_task(Operation operation, const KernelCost& cost);
  static Task& priced(Task& task, const KernelCost& cost);
  Task& collective_task(Operation operation, const CollectiveCost& cost, Interference beside,
                        Bytes size);
  static Collective kind_of(Operation collective);
  CollectiveCost cost_of(Operation collective, Bytes size) const;

  // Collectives on the hosts (StepCosts::through_host): before each, what it is given is copied there,
  // and behind it, what it gives is copied back. Where they run on the devices these do nothing.
  // Source: ProcessGroupGloo.cpp AsyncAllreduceCUDAWork (rule R38).

  /// The task that a collective has to wait for: `ready`, or the copy of that.
  std::int32_t given(Bytes size, std::int32_t ready, std::int32_t bucket);
  /// The task that has the result of the collective that was just added: itself, or the copy. `size`:
  /// what each rank gave.
  std::int32_t received(Bytes size);
  /// Of what `received` gave.
  std::int32_t collective_of(std::int32_t task) const;
  /// Gloo's wait blocks the host until the collective itself is done: a bucket's last one, if a comm hook
  /// sends any.
  void host_waits_for_collective(std::int32_t task, std::int32_t bucket);

  /// A collective of DDP's own, behind `before` if that is one; returns the task that has its result.
  std::int32_t tell(Operation operation, Message message, Bytes size, std::int32_t before = nobody);
  /// The host stands still until a task has ended, and what was enqueued before (a blocking copy to
  /// the host).
  void host_reads(std::int32_t task);
  /// What follows on the device waits for a collective's result.
  void await(std::int32_t task, std::int32_t bucket = nobody);

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  const StepCosts& costs_;
  Schedule schedule_;
  Stream kernel_stream_;
  std::int16_t micro_batch_ = 0;       ///< of what is added
  std::int32_t last_kernel_ = nobody;  ///< the task enqueued last on the stream kernels run on
  std::vector<std::int32_t> sent_;     ///< [bucket] its latest collective, over the hosts
};

}  // namespace ddpsim
