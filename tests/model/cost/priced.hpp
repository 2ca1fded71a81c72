#pragma once

#include "model/cost/cost_model.hpp"
#include "model/ddp/build_schedule.hpp"
#include "model/workload/optimizer.hpp"

/// Schedules with what they cost.
namespace ddpsim::timed {

/// A schedule and the costs of its work.
struct Priced {
  Schedule schedule;
  Costs costs;

  const WorkCost& of(const Task& task) const { return costs.of(task); }
};

inline Priced priced(const StepWorks& works, const CostModel& model, const Training& training) {
  Schedule schedule = build_schedule(works, training);
  Costs costs = model.price(schedule);
  return {std::move(schedule), std::move(costs)};
}

inline Priced priced(const Workload& workload, const CalibratedCluster& cluster,
                     const Training& training, Optimizer optimizer = Optimizer::none) {
  return priced(StepWorks(workload, cluster, optimizer), CostModel(cluster, workload.step_spread),
                training);
}

/// What a piece of work of a step costs by itself.
inline WorkCost cost_of(const StepWorks& works, const CostModel& model, KnownWork known) {
  Schedule alone;
  alone.works = {works.table[known.number]};
  return model.price(alone).works.front();
}

/// What each task with an operation takes on its stream, in order.
inline std::vector<Duration> times_of(const Priced& step, Operation operation) {
  std::vector<Duration> times;
  for (const Task& task : step.schedule.tasks)
    if (task.operation == operation) times.push_back(step.of(task).work);
  return times;
}

}  // namespace ddpsim::timed
