#pragma once

#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// What DistributedDataParallel does before the module's own forward: it announces uneven inputs
/// (join), the buckets it has rebuilt, and broadcasts rank 0's buffers. `ddp_buckets`: how many of
/// the step's buckets are DDP's.
///
/// Returns the task that tells how many ranks have inputs; nobody without join.
std::int32_t announce_before_forward(StepBuilder& step, std::int64_t ddp_buckets);

/// Parameters that DDP's reducer knows: all but those whose all-reduce is delayed.
std::int64_t ddp_parameters(const StepBuilder& step);

}  // namespace ddpsim
