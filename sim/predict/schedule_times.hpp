#pragma once

#include <span>

#include "model/cost/cost_model.hpp"
#include "model/timeline/job_timeline.hpp"
#include "sim/predict/planned_step.hpp"
#include "sim/predict/simulated_ranks.hpp"

namespace ddpsim {

/// The timeline of a step's job as one of its schedule: of each of `ranks`, in their order, the
/// times of the schedule's tasks. Of a task that another rank does a rank has the moment at which
/// it could have begun.
Timeline timeline_of(const Schedule& schedule, const program::Job& job, const JobTimeline& timeline,
                     std::span<const SimulatedRank> ranks, const CostModel& costs);

}  // namespace ddpsim
