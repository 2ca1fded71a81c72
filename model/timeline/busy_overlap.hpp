#pragma once

#include "model/schedule/schedule.hpp"
#include "model/timeline/timeline.hpp"

namespace ddpsim {

/// Does the task only copy memory of the device, and compute nothing? (A copy into a bucket usually
/// divides on the way.)
bool only_copies(const Task& task);

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
BusyOverlap busy_overlap(const Schedule& schedule, const Timeline& timeline, int rank = 0);

}  // namespace ddpsim
