#pragma once

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// Where a rank's step went; the four add up to the step.
struct Breakdown {
  Duration compute{};        ///< a kernel ran
  Duration communication{};  ///< none ran, and a collective did
  Duration waiting{};        ///< none ran, and a collective of this rank waited for other ranks
  Duration launch{};  ///< the rest: the host issuing, hooks, waking up, other ranks' last work
};

/// Every instant of the step, from zero to the end of the timeline, is given to the first line
/// above that holds. Predicted or measured.
Breakdown break_down(const program::Job& job, const JobTimeline& timeline, std::size_t rank);

}  // namespace ddpsim
