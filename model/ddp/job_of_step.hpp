#pragma once

#include "model/ddp/step_works.hpp"
#include "model/program/job.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim::program {

/// What a schedule means, as a job: the same tasks in the same order with the same dependencies,
/// and the memory that each works on. It is the bridge over which planners, engine and executor
/// move from schedules to jobs, one at a time, and goes with the schedule.
///
/// Gradients are followed through the step: where a later micro-batch's is computed, where `.grad`
/// lies (memory of its own, or its place in a bucket), and what is copied where. `works` are those
/// that the schedule was built from. Ranks of which one alone updates something (ZeRO's comm hooks)
/// have programs of their own, and so have those without inputs. Throws std::logic_error for a
/// schedule that no step has.
Job job_of(const Schedule& schedule, const StepWorks& works);

}  // namespace ddpsim::program
