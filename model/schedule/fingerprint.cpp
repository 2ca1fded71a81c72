#include "model/schedule/fingerprint.hpp"

#include <bit>
#include <concepts>
#include <optional>
#include <type_traits>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// 64-bit FNV-1a over the values in turn, each as eight bytes.
/// Source: Fowler, Noll, Vo: The FNV Non-Cryptographic Hash Algorithm, IETF draft-eastlake-fnv.
class Hash {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (value & 0xFF)) * 0x100000001B3u;
      value >>= 8;
    }
  }
  template <typename Value>
  requires std::integral<Value> || std::is_enum_v<Value>
  void add(Value value) { add(static_cast<std::uint64_t>(value)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(Duration time) { add(time.count()); }
  void add(Bytes size) { add(size.count); }
  void add(const std::string& text) {
    add(text.size());
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  template <typename Value>
  void add(const std::vector<Value>& values) {
    add(values.size());
    for (const Value& value : values) add(value);
  }
  template <typename... Values>
  requires(sizeof...(Values) > 1) void add(const Values&... values) { (add(values), ...); }

  template <typename Value>
  void add(const std::optional<Value>& value) {
    add(value.has_value());
    if (value) add(*value);
  }

  void add(const Gemm& gemm) { add(gemm.m, gemm.n, gemm.k, gemm.batch); }

  void add(const ClassCost& cost) {
    add(cost.work, cost.host, static_cast<double>(cost.memory_fraction));
  }

  void add(const Work& work) {
    add(work.operation, work.message, work.gemm, work.traffic, work.type, work.launches,
        work.known_time);
    add(work.caller, work.aside, work.beside_hook, work.optimizer_share, work.host,
        work.hook_calls);
    add(work.payload, work.group, work.communicator, work.handed_over);
    if (work.tensors > 0 || work.call != Duration::zero()) add(work.tensors, work.call);
    if (work.by_class) add(*work.by_class);
  }

  void add(const Task& task) {
    add(task.operation, task.stream, task.host_waits, task.micro_batch, task.work);
    add(task.layer, task.kernel, task.parameter, task.bucket, task.step, task.user_hook);
    add(task.after_begin, task.after_count, task.owner, task.gradient, task.divisor);
  }

  void add(const Kernel& kernel) {
    add(kernel.name, kernel.gemm, kernel.traffic, kernel.launches, kernel.type, kernel.time);
    if (kernel.tensors > 0 || kernel.call != Duration::zero()) add(kernel.tensors, kernel.call);
    if (kernel.by_class) add(*kernel.by_class);
  }

  void add(const CommStep& step) {
    add(step.action, step.operation, step.tensor, step.kernel, step.payload, step.host, step.type);
    add(step.factor, step.divisor, step.group, step.channel, step.keeps_random, step.communicator,
        step.code);
  }

  void add(const LowRank& matrix) { add(matrix.tensor, matrix.rows, matrix.columns, matrix.rank); }

  void add(const MatrixShape& matrix) { add(matrix.rows, matrix.columns); }

  void add(const Bucket& bucket) {
    add(bucket.parameters, bucket.size, bucket.in_place, bucket.sparse, bucket.delayed,
        bucket.holds_gradients);
    add(bucket.steps, bucket.gradients, bucket.low_rank);
  }

  void add(const Chunks& chunks) {
    add(chunks.count, chunks.threads, chunks.output, chunks.time,
        chunks.host_memory.bytes_per_second, chunks.transfer.bytes_per_second);
  }

  void add(const UserHook& hook) {
    add(hook.kind, hook.value, hook.seed, hook.chunks, hook.plugin, hook.passes);
    add(hook.launches, hook.host, hook.groups, hook.layers, hook.outputs);
  }

  void add(const Passes& passes) { add(passes.forward, passes.backward, passes.optimizer); }

  void add(const LoggedIteration& iteration) { add(iteration.begin, iteration.end); }

  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

}  // namespace

std::uint64_t fingerprint(const Schedule& schedule) {
  Hash hash;
  hash.add(schedule.works, schedule.tasks, schedule.after, schedule.buckets, schedule.hooks);
  hash.add(schedule.passes, schedule.logged);
  hash.add(schedule.ranks, schedule.synchronous, schedule.collectives_at_once,
           schedule.ranks_without_inputs, schedule.background.size, schedule.background.pause,
           schedule.rounds);
  hash.add(schedule.hook_state, schedule.hook_seed, schedule.comm_hook_memory);
  return hash.value();
}

std::string fingerprint_text(std::uint64_t fingerprint) {
  return fmt::format("{:016x}", fingerprint);
}

}  // namespace ddpsim
