#pragma once

#include <vector>

#include "model/parallel/bucketing.hpp"
#include "model/parallel/training.hpp"
#include "model/parallel/write/bucket.hpp"
#include "model/parallel/write/step_works.hpp"

namespace ddpsim {

/// The settings of `training` that decide how DDP assigns buckets.
DdpBucketing bucketing_of(const Training& training);

/// The buckets `bucketed` would use, in launch order, without building the job. Throws
/// std::invalid_argument if there is a bucket_refusal (refusals.hpp).
std::vector<Bucket> plan_buckets(const StepWorks& works, const Training& training);

/// How many buckets DDP makes of a workload's gradients by its caps, in the steady state.
std::size_t buckets_by_caps(const WorkloadGradients& workload, const Training& training);

}  // namespace ddpsim
