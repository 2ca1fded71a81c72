#include "sim/predict/predict.hpp"

#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "model/ddp/schedule_builder.hpp"
#include "model/ddp/zero_step.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/predict/fit_times.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_tasks = 10'000'000;  // of all ranks together

void slow_down(Schedule& rank, double factor) {
  for (Task& task : rank.tasks) {
    if (task.stream == Stream::communication || task.stream == Stream::to_host ||
        task.stream == Stream::to_device)
      continue;
    task.work = scaled(task.work, factor);
    task.last_launch = scaled(task.last_launch, factor);
  }
}

/// One schedule for each rank that differs, of which the last is the slowest.
std::vector<Schedule> by_rank(const StepCosts& costs, const Schedule& schedule) {
  const int owners = different_ranks(schedule, costs.ranks);
  const int different = simulated_ranks(costs, schedule);
  if (schedule.tasks.size() * static_cast<std::size_t>(different) > most_tasks)
    throw std::invalid_argument(
        fmt::format("a step of {} ranks with different work of {} tasks each is beyond what is "
                    "simulated ({} tasks): take larger buckets",
                    different, schedule.tasks.size(), most_tasks));
  std::vector<Schedule> ranks;
  for (int rank = 0; rank < different; ++rank)
    ranks.push_back(owners > 1 ? schedule_of_rank(schedule, rank) : schedule);
  if (costs.slowest_rank > 1 && costs.ranks > 1) slow_down(ranks.back(), costs.slowest_rank);
  return ranks;
}

}  // namespace

int simulated_ranks(const StepCosts& costs, const Schedule& schedule) {
  const bool uneven = costs.slowest_rank > 1 && costs.ranks > 1;
  return std::max(different_ranks(schedule, costs.ranks), uneven ? 2 : 1);
}

Timeline simulate_ranks(const StepCosts& costs, const Schedule& schedule) {
  if (simulated_ranks(costs, schedule) == 1) return simulate(schedule);
  return simulate(by_rank(costs, schedule));
}

Step predict(const StepCosts& costs, const Training& training) {
  Step step{training, build_schedule(costs, training), {}, {}};
  step.timeline = simulate_ranks(costs, step.schedule);
  if (different_ranks(step.schedule, costs.ranks) > 1)
    step.schedule = schedule_of_rank(std::move(step.schedule), 0);
  step.metrics = measure(step.schedule, step.timeline);
  return step;
}

StepCosts price(const Scenario& scenario) {
  StepCosts costs(scenario.workload, scenario.cluster, scenario.optimizer);
  fit_times(costs, scenario.training, scenario.times);
  return costs;
}

}  // namespace ddpsim
