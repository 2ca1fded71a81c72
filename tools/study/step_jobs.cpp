#include "tools/study/step_jobs.hpp"

#include "model/parallel/check_for_ranks.hpp"
#include "model/parallel/order/build_job.hpp"

namespace ddpsim {

std::vector<program::Job> jobs_of(const Scenario& scenario, const std::vector<Training>& trainings,
                                  bool all_have_inputs) {
  const StepWorks works(scenario.workload, scenario.cluster, scenario.optimizer);
  std::vector<program::Job> jobs;
  for (const Training& training : trainings) {
    jobs.push_back(build_job(works, training, all_have_inputs));
    check_for_ranks(jobs.back(), training, scenario.workload);
  }
  return jobs;
}

}  // namespace ddpsim
