#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule/comm_step.hpp"
#include "model/schedule/user_hook.hpp"
#include "model/schedule/work.hpp"

namespace ddpsim {

/// Where a task's work runs. Each stream runs one task at a time, in the order of the schedule.
///
/// What a comm hook computes once a collective has ended runs aside: on a stream of its own, or, of
/// a device whose kernels run on the host thread, on the thread that communicates
/// (Stream::communication then holds kernels too). Meanwhile the kernels of the compute stream
/// stand still: one device does both. Copies between a GPU's memory and the host's have a stream
/// for each direction and disturb nobody.
enum class Stream : std::uint8_t { host, compute, communication, aside, to_host, to_device };
inline constexpr std::array all_streams{Stream::host,  Stream::compute, Stream::communication,
                                        Stream::aside, Stream::to_host, Stream::to_device};
std::string_view name_of(Stream stream);

/// A node of the schedule. The host walks the tasks in order: it enqueues those of the other
/// streams, which run later; work on the host stream it runs itself. What a task is (its Work)
/// decides how long it takes; the rest says when it may run and what a backend does it to.
struct Task {
  Operation operation = Operation::forward;
  Stream stream = Stream::compute;
  /// The host stands still until `after` has ended, before it begins this task.
  bool host_waits = false;
  std::int16_t micro_batch = 0;
  std::uint32_t work = 0;       ///< index into Schedule::works
  std::int32_t layer = nobody;  ///< forward, backward
  /// Index in that layer's pass; optimizer: of its kernel; a user's hook: of its group or layer;
  /// buffers: of their group.
  std::int32_t kernel = nobody;
  std::int32_t parameter = nobody;  ///< hook, accumulate, copy_in, divide, copy_out, gradient_hook
  /// copy_in, all_reduce, wait, copy_out, a comm hook's: index into Schedule::buckets
  std::int32_t bucket = nobody;
  std::int32_t step = nobody;       ///< a comm hook's: index into Bucket::steps
  std::int32_t user_hook = nobody;  ///< gradient_hook, module_hook: index into Schedule::hooks
  std::uint32_t after_begin = 0;    ///< this task's slice of Schedule::after
  std::uint32_t after_count = 0;
  /// The one rank that does it, or whose data a collective sends; nobody: all do, and rank 0 sends.
  std::int32_t owner = nobody;
  /// Collectives: the task that put its bucket's last gradient in place.
  std::int32_t gradient = nobody;
  /// copy_in, divide: what the values are divided by; all_reduce: what their sums are.
  std::int32_t divisor = 1;
};

/// Gradients reduced together.
struct Bucket {
  std::vector<std::int32_t> parameters;  ///< in the order they lie in it
  Bytes size;
  bool in_place = false;         ///< it is the gradient of its one parameter, not memory of its own
  bool sparse = false;           ///< one sparse gradient, whose rows are gathered
  bool holds_gradients = false;  ///< its result is not copied back: gradients become views of it
  bool delayed = false;          ///< waited for by nobody (training.delay_all_reduce)
  std::vector<CommStep> steps;   ///< of the comm hook; empty: an all-reduce of the bucket
  /// The shape of each gradient as the comm hook sees it; empty without a comm hook.
  std::vector<MatrixShape> gradients;
  std::vector<LowRank> low_rank;  ///< PowerSGD: in the order their P and Q lie in memory
};

/// A part of a step that PyTorch's DDP logger counts as an iteration: a micro-batch that
/// communicates.
struct LoggedIteration {
  std::uint32_t begin = 0, end = 0;  ///< tasks [begin, end); its last mark is behind the last
};

/// A training step of one rank, as data: what is done where, and what waits for what; but not how
/// long it takes (model/cost/costs.hpp). Built by the code that knows DDP (model/ddp); neither the
/// simulator nor a backend does.
struct Schedule {
  std::vector<Work> works;           ///< each distinct piece once; tasks point to them
  std::vector<Task> tasks;           ///< in the order the host issues them
  std::vector<std::uint32_t> after;  ///< task indices, all earlier ones; tasks hold slices of it
  std::vector<Bucket> buckets;       ///< in launch order
  std::vector<UserHook> hooks;       ///< the user's, in the order given
  Passes passes;
  std::vector<LoggedIteration> logged;  ///< in order; empty: DDP's logger sees nothing of this step

  int ranks = 1;  ///< of the job it was made for
  /// Kernels run on the host thread, which waits for them.
  bool synchronous = false;
  /// How many collectives of one communicator may run at the same time; they begin in order. NCCL:
  /// 1; PyTorch's Gloo has two threads (rule R37).
  int collectives_at_once = 1;
  /// The last ones, which have run out of inputs and send zeros through every collective of the
  /// others.
  int ranks_without_inputs = 0;
  /// All-reduces beside the step, one behind the other, from its start until the first rank has
  /// ended it: each of `size` (zero: there are none), a pause before each.
  struct Background {
    Bytes size;
    Duration pause{};
  };
  Background background;
  int rounds = 1;  ///< the tasks are done so often, one round behind the other

  // With a comm hook.
  /// Equal for schedules whose comm hook keeps the same state from step to step; empty: no comm
  /// hook.
  std::string hook_state;
  std::uint32_t hook_seed = 0;  ///< of its random numbers, the same on all ranks

  /// What people call the comm hook: the first part of its state.
  std::string hook_label() const { return hook_state.substr(0, hook_state.find(';')); }

  const Work& work_of(const Task& task) const { return works[task.work]; }
  std::span<const std::uint32_t> waits_for(const Task& task) const {
    return {after.data() + task.after_begin, task.after_count};
  }
  bool has_inputs(int rank) const { return rank < ranks - ranks_without_inputs; }
};

/// Does it announce something small to other ranks, rather than move gradients, buffers or
/// parameters?
bool is_note(const Schedule& schedule, const Task& task);

/// Does it finish what a bucket, or the used map, sent: a wait for it, a copy back?
inline bool finishes_bucket(const Schedule& schedule, const Task& task) {
  if (task.operation == Operation::copy_out) return task.bucket != nobody;
  if (task.operation != Operation::wait) return false;
  return task.bucket != nobody || schedule.work_of(task).message == Message::used_map;
}

/// Does a comm hook compute beside the backward pass: behind a collective that is issued there?
/// (What one rank alone does for all buckets comes behind the last one.)
bool computes_aside(const Schedule& schedule);

/// How many ranks, the first ones of `ranks`, differ in their work; all others do what the last of
/// these does.
int different_ranks(const Schedule& schedule, int ranks);

/// Is the task left to another rank? (Collectives are everybody's.)
inline bool is_of_another_rank(const Task& task, int rank) {
  return task.owner != nobody && task.owner != rank && !is_collective(task.operation);
}

}  // namespace ddpsim
