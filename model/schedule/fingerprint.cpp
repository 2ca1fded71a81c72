#include "model/schedule/fingerprint.hpp"

#include <fmt/format.h>

#include "model/schedule/value_hash.hpp"

namespace ddpsim {
namespace {

class Hash : public ValueHash<Hash> {
 public:
  using ValueHash::add;

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

  void add(const LoggedIteration& iteration) { add(iteration.begin, iteration.end); }
};

}  // namespace

std::uint64_t fingerprint(const Schedule& schedule) {
  Hash hash;
  hash.add(schedule.works, schedule.tasks, schedule.after, schedule.buckets, schedule.hooks);
  hash.add(schedule.passes, schedule.logged);
  hash.add(schedule.ranks, schedule.synchronous, schedule.collectives_at_once,
           schedule.ranks_without_inputs, schedule.background.size, schedule.background.pause,
           schedule.rounds);
  hash.add(schedule.hook_state, schedule.hook_seed);
  return hash.value();
}

std::string fingerprint_text(std::uint64_t fingerprint) {
  return fmt::format("{:016x}", fingerprint);
}

}  // namespace ddpsim
