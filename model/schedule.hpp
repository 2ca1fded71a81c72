#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/interference.hpp"
#include "model/operation.hpp"
#include "model/quantity.hpp"
#include "model/training.hpp"

namespace ddpsim {

/// Where a task's work runs. Each stream runs one task at a time, in the order of the schedule.
enum class Stream : std::uint8_t { host, compute, communication };
inline constexpr std::array all_streams{Stream::host, Stream::compute, Stream::communication};
std::string_view name_of(Stream stream);

inline constexpr std::int32_t nobody = -1;

/// A node of the schedule. The host walks the tasks in order: it spends `host` on each, and so
/// enqueues those of the other streams, which run later; work on the host stream it runs itself.
struct Task {
  Operation operation = Operation::forward;
  Stream stream = Stream::compute;
  /// The host stands still until `after` has ended, before it begins this task.
  bool host_waits = false;
  std::int16_t micro_batch = 0;
  std::int32_t layer = nobody;      ///< forward, backward
  std::int32_t kernel = nobody;     ///< index in that layer's pass; optimizer: index of its kernel
  std::int32_t parameter = nobody;  ///< hook, accumulate, copy_in, divide, copy_out
  std::int32_t bucket =
      nobody;  ///< copy_in, all_reduce, wait, copy_out: index into Schedule::buckets
  std::uint32_t after_begin = 0;  ///< this task's slice of Schedule::after
  std::uint32_t after_count = 0;
  std::int32_t gradient = nobody;  ///< all_reduce: the task that put its last gradient in place
  std::int32_t launches = 1;       ///< kernels the host enqueues for it
  float memory_fraction = 0;       ///< of `work`, bounded by memory bandwidth
  Duration host{};         ///< to enqueue it (all launches), or to run it if it is the host's own
  Duration work{};         ///< on its stream, alone; of a collective: from the last rank's arrival
  Duration last_launch{};  ///< the work ends no earlier than this after the host enqueued the last
                           ///< launch
  Duration handover{};     ///< all_reduce: from being issued to being taken up by an idle stream
  Interference beside;     ///< all_reduce: how it and the kernels beside it slow each other
  Bytes bytes;             ///< all_reduce, broadcast: payload
};

/// Gradients reduced together.
struct Bucket {
  std::vector<std::int32_t> parameters;  ///< in the order they lie in it
  Bytes size;
  Duration latency{};  ///< of its all-reduce, alone; the rest of the time is transfer
};

/// A training step of one rank, as data: what runs where, and what it waits for. Built by the code
/// that knows DDP (schedule_builder.hpp); neither the simulator nor a backend does.
struct Schedule {
  Strategy strategy = Strategy::none;
  std::vector<Task> tasks;           ///< in the order the host issues them
  std::vector<std::uint32_t> after;  ///< task indices, all earlier ones; tasks hold slices of it
  std::vector<Bucket> buckets;       ///< in launch order

  std::span<const std::uint32_t> waits_for(const Task& task) const {
    return {after.data() + task.after_begin, task.after_count};
  }
};

}  // namespace ddpsim
