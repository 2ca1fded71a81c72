#pragma once

#include "model/ddp/job_of_step.hpp"
#include "model/ddp/training.hpp"
#include "sim/engine/plan.hpp"

namespace ddpsim {

/// A step as planners write it, and as a job of ranks that all have inputs, arranged for the
/// engine.
struct PlannedStep {
  Schedule schedule;
  program::Job job;
  Plans plans;

  PlannedStep(const StepWorks& works, Schedule written);
  PlannedStep(Schedule written, program::Job of_it);
};

/// Throws std::invalid_argument as build_schedule does, and for ranks with different work whose
/// programs would have too many tasks together.
PlannedStep plan_step(const StepWorks& works, const Training& training);

}  // namespace ddpsim
