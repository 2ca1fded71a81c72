#include "tools/study/step_jobs.hpp"

#include <memory>

#include "model/ddp/check_for_ranks.hpp"
#include "model/ddp/job_of_step.hpp"

namespace ddpsim {

JobOf jobs_of(const Scenario& scenario) {
  return [&workload = scenario.workload,
          works = std::make_shared<const StepWorks>(scenario.workload, scenario.cluster,
                                                    scenario.optimizer)](const Schedule& schedule) {
    check_for_ranks(schedule, workload);
    return program::job_of(schedule, *works);
  };
}

}  // namespace ddpsim
