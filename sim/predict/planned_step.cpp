#include "sim/predict/planned_step.hpp"

#include <utility>

namespace ddpsim {

PlannedStep::PlannedStep(program::Job of_it) : job(std::move(of_it)), plans(plans_of(job)) {}

PlannedStep plan_step(const StepWorks& works, const Training& training) {
  return PlannedStep(build_job(works, training, true));
}

}  // namespace ddpsim
