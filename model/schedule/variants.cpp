#include "model/schedule/variants.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

namespace ddpsim {
namespace {

/// The number of a piece of work in a schedule's table, to which the work is added if it is new.
std::uint32_t number_of(Schedule& schedule, const Work& work) {
  for (std::uint32_t w = 0; w < schedule.works.size(); ++w)
    if (schedule.works[w] == work) return w;
  schedule.works.push_back(work);
  return static_cast<std::uint32_t>(schedule.works.size()) - 1;
}

/// Stands for an operation that another rank carries out: this rank's host enqueues nothing for it.
std::uint32_t left_to_others(Schedule& schedule, Operation operation) {
  Work nothing;
  nothing.operation = operation;
  nothing.launches = 0;
  return number_of(schedule, nothing);
}

/// Copies a step task by task, with some tasks left out and others added.
class Rewriter {
 public:
  explicit Rewriter(const Schedule& step) : step_(step), result_(step), places_(step.tasks.size()) {
    result_.tasks.clear();
    result_.after.clear();
    result_.logged.clear();
  }

  /// Leaves the task out: tasks that wait for it will wait for what this task waits for.
  void leave_out(std::uint32_t index) {
    for (const std::uint32_t earlier : step_.waits_for(step_.tasks[index]))
      places_[index].insert(places_[index].end(), places_[earlier].begin(), places_[earlier].end());
  }

  Task& keep(std::uint32_t index) {
    Task task = step_.tasks[index];
    task.after_begin = static_cast<std::uint32_t>(result_.after.size());
    for (const std::uint32_t earlier : step_.waits_for(step_.tasks[index]))
      for (const std::uint32_t place : places_[earlier]) depend_once(task, place);
    task.after_count = static_cast<std::uint32_t>(result_.after.size()) - task.after_begin;
    if (task.gradient != nobody) task.gradient = place_of(task.gradient);
    return append(index, task);
  }

  /// The ranks meet here, before what follows.
  void meet(std::int16_t micro_batch) {
    Work work;
    work.operation = Operation::meet;
    Task task;
    task.operation = Operation::meet;
    task.stream = Stream::host;
    task.host_waits = true;
    task.micro_batch = micro_batch;
    task.work = number_of(result_, work);
    task.after_begin = static_cast<std::uint32_t>(result_.after.size());
    result_.tasks.push_back(task);
  }

  std::uint32_t number(const Work& work) { return number_of(result_, work); }

  Schedule result() { return std::move(result_); }

 private:
  Task& append(std::uint32_t index, const Task& task) {
    places_[index] = {static_cast<std::uint32_t>(result_.tasks.size())};
    return result_.tasks.emplace_back(task);
  }

  void depend_once(const Task& task, std::uint32_t place) {
    const auto begin = result_.after.begin() + task.after_begin;
    if (std::find(begin, result_.after.end(), place) == result_.after.end())
      result_.after.push_back(place);
  }

  std::int32_t place_of(std::int32_t index) const {
    const std::vector<std::uint32_t>& places = places_[at(index)];
    return places.empty() ? nobody : static_cast<std::int32_t>(places.back());
  }

  const Schedule& step_;
  Schedule result_;
  /// [task of the step] its index in the result; for a task that was left out, the indices of the
  /// tasks it waited for.
  std::vector<std::vector<std::uint32_t>> places_;
};

}  // namespace

Schedule schedule_of_rank(Schedule schedule, int rank) {
  std::array<std::optional<std::uint32_t>, operation_count> left;  // [operation] its number
  for (Task& task : schedule.tasks) {
    if (!is_of_another_rank(task, rank)) continue;
    auto& number = left[static_cast<std::size_t>(task.operation)];
    if (!number) number = left_to_others(schedule, task.operation);
    task.work = *number;
    if (task.operation != Operation::wait) continue;
    task.host_waits = false;
    task.after_count = 0;
  }
  return schedule;
}

Schedule with_all_inputs(Schedule schedule) {
  schedule.ranks_without_inputs = 0;
  return schedule;
}

Schedule without(const Schedule& schedule, const std::function<bool(const Task&)>& left_out) {
  Rewriter rewriter(schedule);
  for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    if (left_out(schedule.tasks[i]))
      rewriter.leave_out(i);
    else
      rewriter.keep(i);
  }
  return rewriter.result();
}

Schedule without_communication(const Schedule& schedule) {
  Rewriter rewriter(schedule);
  for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    if (is_collective(task.operation) || is_transfer(task.operation)) {
      rewriter.leave_out(i);
    } else if (schedule.synchronous && task.operation == Operation::wait) {
      if (task.owner == nobody) rewriter.meet(task.micro_batch);
      rewriter.leave_out(i);
    } else {
      Task& kept = rewriter.keep(i);
      if (kept.stream == Stream::communication) kept.stream = Stream::host;
    }
  }
  return rewriter.result();
}

Schedule with_pauses(const Schedule& schedule,
                     const std::function<Duration(const Work&)>& lasting) {
  Rewriter rewriter(schedule);
  for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    if (is_collective(task.operation) && task.step != nobody) {
      Task& pause = rewriter.keep(i);
      pause.owner = nobody;  // all take part in a collective
      Work work;
      work.operation = pause.operation = Operation::pause;
      work.host = lasting(schedule.work_of(task));
      work.communicator = schedule.work_of(task).communicator;
      pause.work = rewriter.number(work);
    } else if (is_collective(task.operation)) {
      rewriter.leave_out(i);
    } else {
      if (task.operation == Operation::wait && task.owner == nobody)
        rewriter.meet(task.micro_batch);
      rewriter.keep(i);
    }
  }
  return rewriter.result();
}

Schedule without_updates(const Schedule& schedule) {
  return without(schedule,
                 [&](const Task& task) { return task.operation == Operation::optimizer; });
}

Schedule repeated(Schedule schedule, int rounds) {
  if (rounds < 1) throw std::invalid_argument("a step is done at least once");
  schedule.rounds *= rounds;
  return schedule;
}

Schedule with_background(const Schedule& schedule, Bytes size, Duration pause) {
  for (const Task& task : schedule.tasks)
    if (is_collective(task.operation))
      throw std::invalid_argument("a step with collectives beside it must have none of its own");
  Schedule beside =
      without(schedule, [](const Task& task) { return task.operation == Operation::meet; });
  beside.background = {size, pause};
  return beside;
}

}  // namespace ddpsim
