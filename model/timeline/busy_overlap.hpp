#pragma once

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// Collectives beside kernels on one rank, as a profiler's trace shows them.
struct BusyOverlap {
  Duration communicating{};  ///< while at least one collective runs, whatever it carries
  Duration beside{};         ///< of that, while a kernel computes; copies do not count

  /// 0 where nothing is communicated.
  double ratio() const {
    return communicating == Duration{}
               ? 0.0
               : static_cast<double>(beside.count()) / static_cast<double>(communicating.count());
  }
};

/// The figure that tools which read traces call the overlap of communication and computation. It
/// differs from `overlap_ratio` (metrics.hpp), which asks how much longer the step is: a collective
/// that runs beside kernels and slows them counts here as overlapped.
/// Source: Holistic Trace Analysis, analyzers/communication_analysis.py.
BusyOverlap busy_overlap(const RankOfJob& rank);

}  // namespace ddpsim
