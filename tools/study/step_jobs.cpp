#include "tools/study/step_jobs.hpp"

#include <memory>

#include "backend/gloo/check_schedule.hpp"
#include "model/ddp/job_of_step.hpp"

namespace ddpsim {

JobOf jobs_of(const Scenario& scenario) {
  return [&workload = scenario.workload,
          works = std::make_shared<const StepWorks>(scenario.workload, scenario.cluster,
                                                    scenario.optimizer)](const Schedule& schedule) {
    check_schedule(schedule, workload, schedule.ranks);
    return program::job_of(schedule, *works);
  };
}

}  // namespace ddpsim
