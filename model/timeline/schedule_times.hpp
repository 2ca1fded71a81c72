#pragma once

#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// The times of a schedule's tasks, of a rank that did them by a program of the schedule's job. Of
/// a task that another rank does a rank has the moment at which it could have begun.
std::vector<TaskTimes> times_of(const Schedule& schedule, const program::Program& program,
                                const std::vector<TaskTimes>& of_program);

/// And back: of each rank of the job the times of its tasks. Where the host waits before a task it
/// has the moment at which it began that task.
JobTimeline timeline_of(const Schedule& schedule, const program::Job& job,
                        const Timeline& timeline);

}  // namespace ddpsim
