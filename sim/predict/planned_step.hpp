#pragma once

#include "model/parallel/order/build_job.hpp"
#include "sim/engine/plan.hpp"

namespace ddpsim {

/// A step as a job, arranged for the engine.
struct PlannedStep {
  program::Job job;
  Plans plans;

  explicit PlannedStep(program::Job of_it);
};

/// The step of ranks that all have inputs. Throws std::invalid_argument as build_job does, and for
/// ranks with different work whose programs would have too many tasks together.
PlannedStep plan_step(const StepWorks& works, const Training& training);

}  // namespace ddpsim
