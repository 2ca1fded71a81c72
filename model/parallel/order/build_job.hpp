#pragma once

#include "model/parallel/policy/strategy_tasks.hpp"
#include "model/parallel/training.hpp"
#include "model/parallel/write/bucket_marks.hpp"
#include "model/parallel/write/step_works.hpp"
#include "model/program/job.hpp"

namespace ddpsim {

/// One training step under `training`, as a job of all ranks: forward in registration order,
/// backward in reverse, gradient hooks, buckets, waits, optimizer.
///
///     none      nothing is communicated
///     naive     after backward, for each parameter: all-reduce, then divide; one at a time
///     flat      after backward: concatenate all gradients, all-reduce, divide, copy back
///     overlap   each hook all-reduces its gradient in place, asynchronously; after backward, for
///               each parameter in that order: wait, divide
///     bucketed  DistributedDataParallel
///
/// Each strategy is a file of its name. Before all others DDP's forward may announce uneven inputs
/// (join) to the other ranks, and rebuild buckets; iteration.hpp says in which iteration.
///
/// With several micro-batches each one communicates, or with no_sync only the last. A `launch:
/// sync` device runs its kernels on the host stream, so hooks fire when their kernel has ended.
/// Throws std::invalid_argument if the step would have more than ten million tasks, or is
/// `bucketed` and cannot be (refusals.hpp: bucket_refusal, step_refusal).
///
/// `all_have_inputs`: Join::joined_ranks do what the others do, which takes them as long.
program::Job build_job(const StepWorks& works, const Training& training,
                       bool all_have_inputs = false);
/// By a strategy that is not in the table, such as one that is being tried.
program::Job build_job(const StepWorks& works, const Training& training, StrategyTasks& strategy,
                       bool all_have_inputs = false);

/// A `bucketed` step with all gradients in one bucket, in the order in which they arrive.
struct OneBucket {
  program::Job job;
  BucketMarks marks;  ///< what other buckets change in it
};
/// The step of `training` but for its buckets. Join::joined_ranks do what the others do. Throws as
/// build_job does.
OneBucket build_one_bucket(const StepWorks& works, Training training);

}  // namespace ddpsim
