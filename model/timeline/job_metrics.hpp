#pragma once

#include "model/timeline/job_timeline.hpp"
#include "model/timeline/metrics.hpp"

namespace ddpsim {

/// The figures of one rank of a job. Buckets are the groups that its tasks come from
/// (program::Origin).
StepMetrics measure(const program::Job& job, const JobTimeline& timeline, std::size_t rank);

/// How long a rank of a job communicates: StepMetrics::communication.
Duration communication_of(const RankOfJob& rank);

/// The chain of pieces that ends with the rank's last task (metrics.hpp).
std::vector<CriticalPiece> critical_path(const RankOfJob& rank);

}  // namespace ddpsim
