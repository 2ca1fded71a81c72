#pragma once

#include <algorithm>
#include <vector>

#include "tests/model/flat_step.hpp"

/// Timelines written by hand, task by task.
namespace ddpsim::timelines {

struct Happened {
  Operation operation = Operation::forward;
  StepStream stream = StepStream::compute;
  Duration issued{}, enqueued{}, start{}, end{};
  std::vector<std::uint32_t> after;
  std::int32_t bucket = nobody;
  int micro_batch = 0;
  std::int32_t gradient = nobody;  ///< the task that completed the bucket
};

/// A kernel that was enqueued in no time, at `issued`.
inline Happened ran(Operation operation, Duration start, Duration end, Duration issued = {}) {
  return {operation, StepStream::compute, issued, issued, start, end, {}, nobody, 0};
}

/// An all-reduce of `bucket`, whose gradients the first task it waits for completed.
inline Happened reduced(std::int32_t bucket, Duration start, Duration end,
                        std::vector<std::uint32_t> after = {}, Duration issued = {}) {
  const std::int32_t gradient = after.empty() ? nobody : static_cast<std::int32_t>(after[0]);
  return {Operation::all_reduce,
          StepStream::communication,
          issued,
          issued,
          start,
          end,
          after,
          bucket,
          0,
          gradient};
}

/// A copy of `bucket` to the host, or back, behind one task.
inline Happened copied(Operation operation, std::int32_t bucket, Duration start, Duration end,
                       std::uint32_t after) {
  Happened copy = ran(operation, start, end);
  copy.stream = operation == Operation::copy_to_host ? StepStream::to_host : StepStream::to_device;
  copy.bucket = bucket;
  copy.after = {after};
  return copy;
}

/// When the tasks of some ranks ran.
struct Times {
  std::vector<std::vector<TaskTimes>> ranks{};  ///< [rank][task]
  std::vector<TaskDetail> details{};            ///< [work]; empty: not known
  Instant end{};
  bool of_each_rank = false;  ///< measured: `ranks` are those of the job
};

struct History {
  FlatStep schedule;
  Times timeline;

  /// The step ends with the last of them; buckets hold 1000 bytes each. Each task has a work of its
  /// own.
  explicit History(const std::vector<Happened>& all, std::size_t buckets = 0) {
    schedule.buckets.resize(buckets);
    timeline.ranks.resize(1);
    for (const Happened& one : all) {
      FlatTask task;
      task.operation = one.operation;
      task.stream = one.stream;
      task.micro_batch = static_cast<std::int16_t>(one.micro_batch);
      task.bucket = one.bucket;
      task.gradient = one.gradient;
      task.work = static_cast<std::uint32_t>(schedule.works.size());
      schedule.works.push_back(work_of(one));
      task.after_begin = static_cast<std::uint32_t>(schedule.after.size());
      task.after_count = static_cast<std::uint32_t>(one.after.size());
      schedule.after.insert(schedule.after.end(), one.after.begin(), one.after.end());
      schedule.tasks.push_back(task);
      timeline.ranks[0].push_back(
          {Instant{one.issued}, Instant{one.enqueued}, Instant{one.start}, Instant{one.end}});
      timeline.end = std::max({timeline.end, Instant{one.end}, Instant{one.enqueued}});
    }
    timeline.details.resize(schedule.works.size());
  }

  Work& work_of(std::size_t task) { return schedule.works[schedule.tasks[task].work]; }
  TaskDetail& detail_of(std::size_t task) { return timeline.details[schedule.tasks[task].work]; }

 private:
  /// A kernel computes unless it takes no time.
  static Work work_of(const Happened& one) {
    Work work;
    work.operation = one.operation;
    if (is_kernel(one.operation)) work.traffic = {(one.end - one.start).count()};
    if (one.operation == Operation::all_reduce) work.payload = {1000};
    return work;
  }
};

}  // namespace ddpsim::timelines
