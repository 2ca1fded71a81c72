#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// What a span of a host thread is to a training step.
enum class HostKind : std::uint8_t {
  step,        ///< "ProfilerStep#7"
  forward,     ///< "DistributedDataParallel.forward"
  node,        ///< the autograd engine evaluates a function
  hook,        ///< the same of AccumulateGrad: the gradient's accumulation and its hooks
  accumulate,  ///< AccumulateGrad alone
  copy_in,     ///< DDP copies a gradient into its bucket
  copy_out,    ///< DDP copies a bucket's part back
  call,        ///< a collective is issued
  execution,   ///< a collective of the CPU (Gloo, MPI) runs
  optimizer,   ///< "Optimizer.step#SGD.step"
  zero_grad,   ///< "Optimizer.zero_grad#SGD.zero_grad"
  loading,     ///< "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
  compute      ///< any other operator that no other surrounds
};

enum class CollectiveKind : std::uint8_t {
  unknown,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  other,
  none  ///< a wait, a barrier: carries nothing
};

/// What a trace says of a collective's message.
struct TracedMessage {
  CollectiveKind kind = CollectiveKind::unknown;
  std::int64_t elements = -1;  ///< -1: not said
  std::int32_t type = -1;      ///< index into Trace::names; -1: not said
  std::int32_t group = -1;     ///< likewise, the name of its process group
  int group_ranks = 0;         ///< ranks of that group; 0: not said
};

struct HostSpan {
  Duration begin{}, end{};  ///< from the first event of the file
  std::uint32_t thread = 0;
  HostKind kind = HostKind::compute;
  /// A collective's index into Trace::messages, an accumulation's or copy's into Trace::shapes, or
  /// the number of a step. -1: not said.
  std::int32_t detail = -1;
};

/// A kernel or copy on a device.
struct DeviceSpan {
  Duration begin{}, end{};
  std::uint64_t correlation = 0;  ///< with its launch; 0: not said
  std::int64_t bytes = -1;        ///< of a copy
  std::int32_t message = -1;      ///< of a collective's kernel, index into Trace::messages
  std::int32_t stream = -1;       ///< -1: not said
  bool kernel = true;
};

/// A call that puts work on a device.
struct LaunchCall {
  std::uint64_t correlation = 0;
  Duration at{};
  std::uint32_t thread = 0;
};

/// A tensor's shape and type.
struct Shape {
  static constexpr std::int32_t in_bytes = -2;
  std::vector<std::int64_t> extents;
  /// Index into Trace::names; -1: not said; in_bytes: `extents` is the number of bytes, -1 if not
  /// even that is known.
  std::int32_t type = -1;
  bool operator==(const Shape&) const = default;
  auto operator<=>(const Shape&) const = default;
};

/// What matters of a profiler's trace, in the order of its file.
struct Trace {
  std::vector<HostSpan> host;
  std::vector<DeviceSpan> device;
  std::vector<LaunchCall> launches;
  /// From begin to end a thread of the host waits for the device ("cudaStreamSynchronize").
  std::vector<std::pair<Duration, Duration>> waits;
  std::vector<TracedMessage> messages;
  std::vector<Shape> shapes;         ///< each once
  std::vector<std::string> names;    ///< each once: types, process groups
  std::vector<std::string> threads;  ///< of HostSpan::thread, "PID/TID"
  std::string device_name;
  int devices = 0;      ///< that the process could use; 0: not said
  std::string backend;  ///< "nccl"
  int rank = -1, ranks = 0;
  bool of_ddpsim = false;     ///< ddpsim wrote it, of a step of its own
  std::uint64_t events = 0;   ///< in the file
  std::uint64_t unended = 0;  ///< spans without a duration, or with one below zero
  std::uint64_t graph_launches = 0;
};

/// Reads the Chrome trace that PyTorch's profiler writes (a JSON object with "traceEvents", or the
/// bare list that PyTorch without Kineto writes), plain or gzip.
///
/// Memory grows with the events that matter to a step (kernels, launches, hooks, collectives,
/// outermost operators: usually a third), by at most 48 bytes each here and about 140 until the
/// steps are found, and more than 4 million of them are refused (0.6 GB);
/// everything else of the file is forgotten at once. Throws InputError for everything stream_json
/// does, for files of other contents, numbers outside of what a trace can hold, keys that an event
/// repeats, and correlation ids that two launches share.
Trace read_trace(const std::filesystem::path& file, const std::function<void(double)>& progress);

}  // namespace ddpsim
