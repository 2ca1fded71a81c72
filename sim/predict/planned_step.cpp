#include "sim/predict/planned_step.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "model/ddp/build_schedule.hpp"
#include "model/schedule/variants.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_tasks = 10'000'000;  // of all ranks together

program::Job job_of_alike(const Schedule& schedule, const StepWorks& works) {
  const auto different = static_cast<std::size_t>(different_ranks(schedule, schedule.ranks));
  if (schedule.tasks.size() * different > most_tasks)
    throw std::invalid_argument(
        fmt::format("a step of {} ranks with different work of {} tasks each is beyond what is "
                    "simulated ({} tasks): take larger buckets",
                    different, schedule.tasks.size(), most_tasks));
  if (schedule.ranks_without_inputs == 0) return program::job_of(schedule, works);
  return program::job_of(with_all_inputs(schedule), works);
}

}  // namespace

PlannedStep::PlannedStep(const StepWorks& works, Schedule written)
    : schedule(std::move(written)), job(job_of_alike(schedule, works)), plans(plans_of(job)) {}

PlannedStep::PlannedStep(Schedule written, program::Job of_it)
    : schedule(std::move(written)), job(std::move(of_it)), plans(plans_of(job)) {}

PlannedStep plan_step(const StepWorks& works, const Training& training) {
  return {works, build_schedule(works, training)};
}

}  // namespace ddpsim
