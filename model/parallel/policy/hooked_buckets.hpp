#pragma once

#include <vector>

#include "model/parallel/hooks/comm_hooks.hpp"
#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Writes what a comm hook does with each bucket in place of DDP's all-reduce.
///
/// Ranks of ZeRO's hooks have different work: each bucket's parameters are updated by one rank,
/// which then broadcasts them, and no optimizer follows backward.
///
///     zero_step               the last bucket's hook does it for all buckets, on the stream of the
///                             kernels: wait for a bucket's all-reduce (its owner only), update,
///                             broadcast; then it waits for all broadcasts
///     zero_step_interleaved   each bucket's, once its all-reduce has ended, on the stream aside;
///                             DDP waits for the last broadcast with the last bucket
///
/// Source: pytorch ddp_comm_hooks/ddp_zero_hook.py hook_with_zero_step and
/// hook_with_zero_step_interleaved, optim/zero_redundancy_optimizer.py (rule R45). Without
/// shard_buckets.
class HookedBuckets {
 public:
  /// The first `count` buckets are the hook's; the job says which state it keeps.
  void plan(StepBuilder& step, std::size_t count);

  /// Makes what the hook keeps of a bucket, whose memory is there now.
  void lay_out(StepBuilder& step, std::int32_t bucket);

  /// Calls the hook with a full bucket.
  void launch(StepBuilder& step, std::int32_t bucket);

  /// Does the hook compute behind a collective, beside the backward pass?
  bool computes_aside() const;

 private:
  struct How {
    std::uint8_t communicator = 0;
    bool beside = false;
    std::int32_t owner = nobody;  ///< the one rank that does it, or whose data are sent
  };
  void add(StepBuilder& step, std::int32_t bucket, const HookTask& task);
  void add_last(StepBuilder& step);
  static program::Origin origin_of(StepBuilder& step, std::int32_t bucket, const HookTask& task);
  static void compute(StepBuilder& step, std::int32_t bucket, const HookTask& task, const How& how);
  static std::int32_t send(StepBuilder& step, std::int32_t bucket, const HookTask& task,
                           const How& how, std::int32_t input, std::int32_t copied_for);

  CommHook hook_;                             ///< in this iteration
  std::vector<std::vector<HookTask>> tasks_;  ///< [bucket with a hook]

  // State of the bucket that is being launched.
  std::int32_t before_ = nobody;  ///< the task that the next one waits for
  bool aside_ = false;            ///< a collective has been issued
  std::uint8_t communicator_ = 0;
};

/// The rank that updates a bucket. Source: zero_redundancy_optimizer.py _get_assigned_rank.
constexpr std::int32_t owner_of_bucket(std::int32_t bucket, int ranks) {
  return bucket % ranks;
}

}  // namespace ddpsim
