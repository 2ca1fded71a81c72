#pragma once

#include "model/cost/cost_model.hpp"
#include "model/workload/optimizer.hpp"
#include "tests/model/flat_step.hpp"

/// Steps with what they cost.
namespace ddpsim::timed {

/// A step and the costs of its work.
struct Priced {
  FlatStep schedule;
  Costs costs;

  const WorkCost& of(const FlatTask& task) const { return costs.works[task.work]; }
};

inline Costs price(const CostModel& model, const FlatStep& step) {
  return model.price(step.works, step.passes);
}

inline Priced priced(const StepWorks& works, const CostModel& model, const Training& training) {
  FlatStep schedule = flat_step(works, training);
  Costs costs = price(model, schedule);
  return {std::move(schedule), std::move(costs)};
}

inline Priced priced(const Workload& workload, const CalibratedCluster& cluster,
                     const Training& training, Optimizer optimizer = Optimizer::none) {
  return priced(StepWorks(workload, cluster, optimizer), CostModel(cluster, workload.step_spread),
                training);
}

/// What a piece of work of a step costs by itself.
inline WorkCost cost_of(const StepWorks& works, const CostModel& model, KnownWork known) {
  FlatStep alone;
  alone.works = {works.table[known.number]};
  return price(model, alone).works.front();
}

/// What each task with an operation takes on its stream, in order.
inline std::vector<Duration> times_of(const Priced& step, Operation operation) {
  std::vector<Duration> times;
  for (const FlatTask& task : step.schedule.tasks)
    if (task.operation == operation) times.push_back(step.of(task).work);
  return times;
}

}  // namespace ddpsim::timed
