#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/cost/interference.hpp"
#include "model/ddp/comm_hook.hpp"
#include "model/ddp/training.hpp"
#include "model/ddp/user_hook.hpp"
#include "model/schedule/operation.hpp"

namespace ddpsim {

/// Where a task's work runs. Each stream runs one task at a time, in the order of the schedule.
///
/// What a comm hook computes once a collective has ended runs aside: on a stream of its own, or, of a
/// device whose kernels run on the host thread, on the thread that communicates (Stream::communication
/// then holds kernels too). Meanwhile the kernels of the compute stream stand still: one device does
/// both. Copies between a GPU's memory and the host's have a stream for each direction and disturb
/// nobody.
enum class Stream : std::uint8_t { host, compute, communication, aside, to_host, to_device };
inline constexpr std::array all_streams{Stream::host,  Stream::compute, Stream::communication,
                                        Stream::aside, Stream::to_host, Stream::to_device};
std::string_view name_of(Stream stream);

/// What a collective carries: a bucket's gradients, or what DDP itself has to tell or to agree on
/// (then Task::bucket is nobody, and where values matter to nobody else a backend may send others).
enum class Message : std::uint8_t {
  gradients,
  buffers,         ///< rank 0's, before forward
  bucket_indices,  ///< of the rebuild: int32 for each parameter and one more
  bucket_lengths,  ///< of the rebuild: int32 for each bucket
  used_map,        ///< which parameters were used: int32 for each
  active_ranks,    ///< join: 1 of every rank that has inputs
  early_end,       ///< join: has any rank run out of inputs?
  buffer_source,   ///< join: the largest rank that has inputs
  will_sync,       ///< join: 1 of every rank that will communicate gradients
  parameters,      ///< post_local_sgd: models are averaged
  // The three parts of a sparse gradient, in its bucket.
  sparse_shape,
  sparse_indices,
  sparse_values,
};
std::string_view name_of(Message message);

/// A node of the schedule. The host walks the tasks in order: it spends `host` on each, and so
/// enqueues those of the other streams, which run later; work on the host stream it runs itself.
struct Task {
  Operation operation = Operation::forward;
  Stream stream = Stream::compute;
  Message message = Message::gradients;  ///< collectives, waits for one, kernels that prepare one
  /// The host stands still until `after` has ended, before it begins this task.
  bool host_waits = false;
  std::uint8_t communicator = 0;  ///< collectives: in whose queue it stands
  std::int16_t micro_batch = 0;
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
  std::int32_t gradient =
      nobody;  ///< collectives: the task that put its bucket's last gradient in place
  std::int32_t launches = 1;  ///< kernels the host enqueues for it
  float memory_fraction = 0;  ///< of `work`, bounded by memory bandwidth
  Duration host{};         ///< to enqueue it (all launches), or to run it if it is the host's own
  Duration work{};         ///< on its stream, alone; of a collective: from the last rank's arrival
  Duration last_launch{};  ///< the work ends no earlier than this after the host enqueued the last
                           ///< launch
  Duration latency{};      ///< collectives: the part of `work` that is not transfer
  Duration handover{};     ///< collectives: from being issued to being taken up by an idle stream
  Interference beside;     ///< collectives: how it and the kernels beside it slow each other
  Bytes bytes;             ///< collectives: payload
};

/// Does it tell other ranks something small, rather than move gradients, buffers or parameters?
constexpr bool is_note(const Task& task) {
  return is_collective(task.operation) && task.bucket == nobody &&
         task.message != Message::gradients && task.message != Message::buffers &&
         task.message != Message::parameters;
}

/// Gradients reduced together.
struct Bucket {
  std::vector<std::int32_t> parameters;  ///< in the order they lie in it
  Bytes size;
  bool delayed = false;         ///< not DDP's, and waited for by nobody (DelayedAllReduce)
  std::vector<CommStep> steps;  ///< of the comm hook; empty: an all-reduce of the bucket
  /// Of each parameter, as the comm hook sees it; empty without one.
  std::vector<CommBucket::Matrix> gradients;
};

/// A training step of one rank, as data: what runs where, and what it waits for. Built by the code
/// that knows DDP (schedule_builder.hpp); neither the simulator nor a backend does.
struct Schedule {
  Strategy strategy = Strategy::none;
  std::vector<Task> tasks;           ///< in the order the host issues them
  std::vector<std::uint32_t> after;  ///< task indices, all earlier ones; tasks hold slices of it
  std::vector<Bucket> buckets;       ///< in launch order
  CommHook comm_hook;                ///< with one, copies into buckets do not divide
  Bytes comm_hook_memory;            ///< of the device, besides the buckets, at most at one time
  std::vector<UserHook> hooks;       ///< the user's, in the order given
  /// Of one communicator: they begin in order, and so many may be under way. NCCL: 1; PyTorch's Gloo
  /// has two threads (rule R37).
  int collectives_at_once = 1;
  std::optional<Join> join;  ///< what happens to ranks without inputs

  /// What a sum over ranks is divided by.
  int divisor(int ranks) const {
    const bool active = join && !join->divide_by_initial_world_size && !comm_hook;
    return active ? ranks - join->joined_ranks : ranks;
  }
  bool is_joined(int rank, int ranks) const { return join && rank >= ranks - join->joined_ranks; }

  std::span<const std::uint32_t> waits_for(const Task& task) const {
    return {after.data() + task.after_begin, task.after_count};
  }
};

/// Whether a comm hook computes beside the backward pass: behind a collective that is launched there.
bool computes_aside(const Schedule& schedule);

}  // namespace ddpsim
