#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/parallel/comm_hook.hpp"
#include "model/parallel/write/job_memory.hpp"

namespace ddpsim {

/// One task of a comm hook on one bucket.
struct HookTask {
  std::string_view label;  ///< for people
  Work work;               ///< but for where it runs
  program::Action action;
  std::optional<program::Action> then{};  ///< done behind it, at no cost
  std::int32_t gradient = nobody;         ///< its place in the bucket; nobody: all of them
  bool is_owners = false;  ///< ZeRO: the rank that owns the bucket does it, or sends it
  bool in_last = false;    ///< the hook of the last bucket does it, for each bucket

  bool is_collective() const { return ddpsim::is_collective(work.operation); }
};

/// A bucket of a job as its comm hook finds it.
struct HookedBucket {
  std::int32_t index = 0;
  program::Slice data{};
  std::vector<program::Slice> slots{};  ///< places of its gradients, in their order
  std::vector<MatrixShape> matrices{};  ///< the gradients as PowerSGD takes them

  // For a hook that updates parameters:
  program::Slice parameters{};  ///< of this bucket, in one piece
  program::Update update{};     ///< the optimizer's step for them
  double optimizer_share = 0;   ///< of the whole optimizer
};

/// Where and when a comm hook is called.
struct HookCall {
  int ranks = 1;
  int ranks_per_node = 1;    ///< the subgroup of post_local_sgd where it names none
  bool synchronous = false;  ///< kernels run on the host thread
  int iteration = 0;         ///< counted from 1; 0: the steady state
  /// The communicator of all ranks in groups of so many next to each other; 0: of all together.
  std::function<std::int16_t(std::int32_t)> communicator{};
};

/// Writes what a comm hook does with a bucket, task by task, each of which waits for the one
/// before. Those before the first collective run where DDP calls the hook, those behind it once the
/// collective has ended; hooked_buckets.hpp says when ZeRO's do. What a task reads and writes of
/// PyTorch's tensors gives its traffic.
class HookWriter {
 public:
  /// All must outlive the writer.
  HookWriter(program::JobMemory& memory, const CommHook& hook, const HookedBucket& bucket,
             const HookCall& call)
      : hook(hook), bucket(bucket), call(call), memory_(memory), data_(bucket.data) {}

  const CommHook& hook;
  const HookedBucket& bucket;
  const HookCall& call;
  std::vector<HookTask> tasks;

  /// Is the iteration one of the first `count`?
  bool is_among_first(int count) const { return call.iteration > 0 && call.iteration <= count; }

  /// What the hook works on: the bucket, or what it was copied to last.
  const program::Slice& data() const { return data_; }
  void work_on(const program::Slice& data) { data_ = data; }
  /// The place of a gradient in the data.
  program::Slice gradient(std::int32_t index) const;
  DType type() const { return type_of(data_); }
  Bytes bytes_of(const program::Slice& slice) const {
    return slice.count * size_of(type_of(slice));
  }
  /// The bytes that so many reads and writes of all data move.
  Bytes passes(std::int64_t count) const { return count * bytes_of(data_); }

  /// Memory of the hook's own for this bucket; asked for again, it is the same.
  program::Slice buffer(std::string_view name, DType type, std::int64_t elements,
                        program::Life life = program::Life::step,
                        program::Start start = program::Start::undefined) {
    return memory_of(name, program::Holds::hook, type, elements, life, start);
  }
  /// Where comes what all ranks send of theirs. It stays for the next step, which may be one
  /// without communication.
  program::Slice gathered(std::string_view name, const program::Slice& each);
  /// A view of such memory.
  void add_view(std::string_view name, const program::Slice& of, program::Start start);
  program::Operands list(const std::vector<program::Slice>& slices) { return memory_.list(slices); }
  std::int16_t label(std::string_view text) { return memory_.label(text); }

  /// The communicator over whose ranks a mean is; nowhere: over one rank alone.
  std::int16_t mean_over(int ranks) const;

  /// A kernel that reads and writes `traffic` bytes together.
  HookTask& kernel(std::string_view label, Operation operation, Bytes traffic,
                   const program::Action& action, int launches = 1);
  /// to = from, pieces one behind the other; `how` says what else of it.
  HookTask& pack(std::string_view label, Bytes traffic, const std::vector<program::Slice>& to,
                 const std::vector<program::Slice>& from, program::Pack how = {}, int launches = 1);
  /// Each rank sends all of `what.from`.
  HookTask& collective(std::string_view label, Operation operation,
                       const program::Collective& what);
  /// slice = its sum over ranks
  HookTask& all_reduce(std::string_view label, const program::Slice& slice);
  HookTask& all_gather(std::string_view label, const program::Slice& from,
                       const program::Slice& to);
  /// slice /= ranks
  void divide(std::string_view label, const program::Slice& slice, int ranks);
  /// The optimizer's step for the parameters of the bucket.
  HookTask& update();
  /// The host waits for the device, if that is another.
  void synchronize();
  /// The data in a 16-bit type.
  void cast(DType type);
  /// The bucket = the data, if those are of another type.
  void cast_back();

 private:
  DType type_of(const program::Slice& slice) const {
    return memory_.job.buffers[slice.buffer].type;
  }
  program::Slice memory_of(std::string_view name, program::Holds holds, DType type,
                           std::int64_t elements, program::Life life, program::Start start);
  HookTask& add(std::string_view label, const Work& work, const program::Action& action);

  program::JobMemory& memory_;
  program::Slice data_;
  std::vector<program::Slice> made_;  ///< memory of the hook's own
};

}  // namespace ddpsim
