#pragma once

#include <string>

#include "model/ddp/training.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

// ZeroRedundancyOptimizer that overlaps with DDP: each bucket's parameters are updated by one rank,
// which then broadcasts them, and no optimizer follows backward. So ranks have different work, in a
// schedule they share: Task::owner says whose a task is.
//
//     zero_step               the last bucket's hook does it for all buckets, on the stream of the
//                             kernels: wait for a bucket's all-reduce (its owner only), update,
//                             broadcast; then it waits for all broadcasts
//     zero_step_interleaved   each bucket's, once its all-reduce has ended, on the stream aside; DDP
//                             waits for the last broadcast with the last bucket
//
// Source: pytorch ddp_comm_hooks/ddp_zero_hook.py hook_with_zero_step and
// hook_with_zero_step_interleaved, optim/zero_redundancy_optimizer.py (rule R45). Without
// shard_buckets.

constexpr bool is_zero_step(CommHookKind kind) {
  return kind == CommHookKind::zero_step || kind == CommHookKind::zero_step_interleaved;
}

/// The rank that updates a bucket. Source: zero_redundancy_optimizer.py _get_assigned_rank.
constexpr std::int32_t owner_of_bucket(std::int32_t bucket, int ranks) {
  return bucket % ranks;
}

/// Why PyTorch's hook would fail or never begin in this training; empty: it would not.
std::string zero_step_refusal(const Training& training);

/// So many ranks differ, the first ones of `ranks`; all others do what the last of these does.
int different_ranks(const Schedule& schedule, int ranks);

/// The schedule as `rank` carries it out, task by task: what another rank owns takes it no time. It does
/// not wait for what only the owner waits for.
Schedule schedule_of_rank(Schedule schedule, int rank);

}  // namespace ddpsim
