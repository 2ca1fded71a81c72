#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// The times of a schedule's tasks, of a rank that did them by a program of the schedule's job. Of
/// a task that another rank does a rank has the moment at which it could have begun.
std::vector<TaskTimes> times_of(const Schedule& schedule, const program::Program& program,
                                const std::vector<TaskTimes>& of_program);

/// The timeline of a step's job as one of its schedule: of each of `ranks`, in their order.
Timeline timeline_of(const Schedule& schedule, const program::Job& job, const JobTimeline& timeline,
                     std::span<const std::size_t> ranks);

/// And back: of each rank of the job the times of its tasks. Where the host waits before a task it
/// has the moment at which it began that task.
JobTimeline timeline_of(const Schedule& schedule, const program::Job& job,
                        const Timeline& timeline);

}  // namespace ddpsim
