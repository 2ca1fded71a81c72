#pragma once

#include <cstdint>
#include <vector>

#include "model/program/job.hpp"
#include "model/timeline/task_times.hpp"

namespace ddpsim {

/// When the tasks of a job ran. Ranks that did the same at the same time are one class.
struct JobTimeline {
  std::vector<std::vector<TaskTimes>> classes;  ///< [class][task of its program]
  std::vector<std::uint32_t> class_of;          ///< [rank]
  Instant end{};
  std::uint64_t events = 0;  ///< ends and wake-ups that it took
  bool measured = false;     ///< not predicted: each rank of the job is a class
  /// What a prediction knows besides times: [class] index into `details`, and of each list
  /// [Job::works]; empty: measured, and not known.
  std::vector<std::uint16_t> details_of;
  std::vector<std::vector<TaskDetail>> details;
};

/// What people take a task for: of a user's hook not what its kernel computes, and a sparse
/// gradient's copy is the division that DDP has there. It is priced by its work's operation.
Operation operation_of(const program::Job& job, const program::Task& task);

/// What one rank did, and when.
struct RankOfJob {
  const program::Job& job;
  const program::Program& program;
  const std::vector<TaskTimes>& times;     ///< [task]
  const std::vector<TaskDetail>* details;  ///< [Job::works]; null: not known

  RankOfJob(const program::Job& of, const JobTimeline& timeline, std::size_t rank);

  TaskDetail detail_of(const program::Task& task) const {
    return details == nullptr ? TaskDetail{} : (*details)[task.work];
  }
  const program::Action& action_of(const program::Task& task) const {
    return job.deed_of(task).action;
  }
  const program::Origin& origin_of(const program::Task& task) const {
    return job.deed_of(task).origin;
  }
  /// Do people see it as part of another task? So are the host's wait before a task that it
  /// enqueues, what a rank without inputs clears, and what is done behind a task at no cost.
  bool is_part_of_another(const program::Task& task) const {
    const Work& work = job.works[task.work];
    const bool is_free = work.operation == Operation::own_kernel && work.launches == 0;
    return origin_of(task) == program::Origin{} && (is_free || work == Work{});
  }
  /// Does the host stand still before the task that is the program's `index`-th?
  bool host_waits_before(std::size_t index) const {
    return index > 0 && program.tasks[index - 1].stream == 0 &&
           is_part_of_another(program.tasks[index - 1]);
  }
  /// Does the device, or the host of one that computes itself, compute anything in it, rather than
  /// a thread beside it?
  bool computes(const program::Task& task) const {
    return !job.streams[task.stream].beside && job.works[task.work].computes();
  }
  /// Is it a collective, a send or a receive?
  bool communicates(const program::Task& task) const {
    return program::communicator_of(action_of(task)) != nobody;
  }
  /// A copy between the memory of the device and the host's?
  bool moves(const program::Task& task) const {
    return std::holds_alternative<program::Move>(action_of(task));
  }
};

/// The first rank of each class.
std::vector<std::size_t> first_ranks(const JobTimeline& timeline);

}  // namespace ddpsim
