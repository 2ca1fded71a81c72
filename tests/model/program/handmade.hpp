#pragma once

#include <vector>

#include "tests/model/flat_step.hpp"
#include "tests/model/timeline/of_rows.hpp"

/// Steps written by hand, task by task.
namespace ddpsim::handmade {

/// A kernel that moves `traffic`.
inline Work moved(Operation operation, std::int64_t traffic) {
  return moving(operation, {traffic});
}

/// A collective of `payload`, or the wait for one.
inline Work sent(Operation operation, std::int64_t payload, Message message = Message::gradients) {
  Work work;
  work.operation = operation;
  work.payload = {payload};
  work.message = message;
  return work;
}

/// Adds a task; its work is found in the step, or added.
inline FlatTask& add(FlatStep& schedule, const Work& work, StepStream stream,
                     std::vector<std::uint32_t> after = {}) {
  std::uint32_t number = 0;
  while (number < schedule.works.size() && !(schedule.works[number] == work)) ++number;
  if (number == schedule.works.size()) schedule.works.push_back(work);
  FlatTask& task = schedule.tasks.emplace_back();
  task.operation = work.operation;
  task.stream = stream;
  task.work = number;
  task.after_begin = static_cast<std::uint32_t>(schedule.after.size());
  task.after_count = static_cast<std::uint32_t>(after.size());
  schedule.after.insert(schedule.after.end(), after.begin(), after.end());
  return task;
}

/// The rows as a job of ranks that are all alike.
inline program::Job job_of(const FlatStep& step, std::size_t ranks = 1) {
  timelines::Times never;
  never.ranks.resize(ranks);
  return timelines::OfRows(step, never).job;
}

}  // namespace ddpsim::handmade
