#include "model/cost/costs.hpp"

namespace ddpsim {
namespace {

/// Does the time of this work depend on the rank's own computing speed?
bool is_computed(const Work& work, bool synchronous) {
  if (is_transfer(work.operation)) return false;
  if (is_collective(work.operation)) return false;
  return !(work.aside && synchronous);  // on a thread that communicates
}

}  // namespace

Costs slowed_down(const std::vector<Work>& works, bool synchronous, Costs costs, double factor) {
  for (std::size_t w = 0; w < costs.works.size(); ++w) {
    if (!is_computed(works[w], synchronous)) continue;
    costs.works[w].work = scaled(costs.works[w].work, factor);
    costs.works[w].last_launch = scaled(costs.works[w].last_launch, factor);
    costs.works[w].launch_rate /= static_cast<float>(factor);
  }
  return costs;
}

std::size_t kernel_at(const Schedule& schedule, const Costs& costs, double at, std::size_t begin,
                      std::size_t end) {
  const auto computes = [&](const Task& task) {
    return is_training(task.operation) && costs.of(task).work > Duration::zero();
  };
  Duration all{}, so_far{};
  for (std::size_t t = begin; t < end; ++t)
    if (computes(schedule.tasks[t])) all += costs.of(schedule.tasks[t]).work;
  const Duration until = scaled(all, at);
  std::size_t kernel = end;
  for (std::size_t t = begin; t < end && (kernel == end || so_far < until); ++t) {
    if (!computes(schedule.tasks[t])) continue;
    kernel = t;
    so_far += costs.of(schedule.tasks[t]).work;
  }
  return kernel;
}

void add_pause(Schedule& schedule, Costs& costs, Duration pause, double at, std::size_t begin,
               std::size_t end) {
  const std::size_t kernel = kernel_at(schedule, costs, at, begin, end);
  if (kernel == end) return;
  Task& paused = schedule.tasks[kernel];
  Work work = schedule.work_of(paused);
  WorkCost cost = costs.of(paused);
  work.host += pause;
  cost.host += pause;
  cost.first_launch += pause;
  paused.work = static_cast<std::uint32_t>(schedule.works.size());
  schedule.works.push_back(work);
  costs.works.push_back(cost);
}

double total_seconds(const Schedule& schedule, const Costs& costs) {
  std::vector<std::uint32_t> uses(costs.works.size());
  for (const Task& task : schedule.tasks) ++uses[task.work];
  double seconds = 0;
  for (std::size_t w = 0; w < uses.size(); ++w)
    seconds += uses[w] * (in_seconds(costs.works[w].host) + in_seconds(costs.works[w].work));
  return seconds;
}

}  // namespace ddpsim
