#pragma once

#include "model/cost/step_costs.hpp"
#include "model/ddp/training.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// One training step of one rank under `training`, priced by `costs`: forward in registration order,
/// backward in reverse, gradient hooks, buckets, waits, optimizer.
///
///     none      nothing is communicated
///     naive     after backward, for each parameter: all-reduce, then divide; one at a time
///     flat      after backward: concatenate all gradients, all-reduce, divide, copy back
///     overlap   each hook all-reduces its gradient in place, asynchronously; after backward, for
///               each parameter in that order: wait, divide
///     bucketed  DistributedDataParallel: each hook copies gradient x 1/W into its bucket; a bucket
///               is launched when it is full and every earlier one has been; after backward, bucket
///               by bucket: wait, copy back (not with gradient_as_bucket_view). Before forward it
///               broadcasts buffers, if the workload has any.
///
/// Before all others DDP's forward may tell other ranks of uneven inputs (join), and rebuild buckets;
/// iteration.hpp says in which iteration. A parameter that no gradient reaches is ready, as zeros, at
/// the first hook, and not copied back; other strategies leave it out. A bucket of one sparse gradient
/// is three all-gathers, as Gloo has it, and no copies.
///
/// With several micro-batches each one communicates, or with no_sync only the last. A `launch: sync`
/// device runs its kernels on the host stream, so hooks fire when their kernel has ended.
/// Throws std::invalid_argument if explicit buckets miss or repeat a parameter, a group would be
/// empty, the step would be longer than six hours or ten million tasks, DDP would wait for ever for an
/// unused parameter (rule R35), or a comm hook would be given a sparse gradient.
/// Source: pytorch reducer.cpp, distributed.py, join.py; rules R8-R10, R16-R24 and R26-R36.
Schedule build_schedule(const StepCosts& costs, const Training& training);

/// The buckets `bucketed` would use, in launch order, without building the schedule.
std::vector<Bucket> plan_buckets(const StepCosts& costs, const Training& training);

/// Does it hold one sparse gradient and nothing else?
bool is_sparse(const StepCosts& costs, const Bucket& bucket);

}  // namespace ddpsim
