#include "model/timeline/ddp_statistics.hpp"

#include <algorithm>
#include <chrono>

namespace ddpsim {
namespace {

/// Before which task each mark is.
struct Marks {
  std::uint32_t forward_start = 0, compute_start = 0, comm_start = 0, compute_end = 0, comm_end = 0;
};

constexpr std::uint32_t nowhere = ~std::uint32_t{0};

/// Does it put a gradient of the first bucket in place, or tell DDP that it is there?
bool fills_first(const Task& task) {
  return task.bucket == 0 &&
         (task.operation == Operation::hook || task.operation == Operation::copy_in ||
          task.operation == Operation::divide || task.operation == Operation::concatenate);
}

Marks marks_of(const Schedule& schedule) {
  const auto count = static_cast<std::uint32_t>(schedule.tasks.size());
  const std::int16_t last = schedule.tasks.back().micro_batch;
  Marks marks{nowhere, nowhere, nowhere, nowhere, 0};
  std::uint32_t filled = nowhere;  // after the last that fills the first bucket
  bool searched = false;           // for unused parameters, which a static graph never does
  for (std::uint32_t i = 0; i < count; ++i) {
    const Task& task = schedule.tasks[i];
    if (task.micro_batch != last) continue;
    marks.forward_start = std::min(marks.forward_start, i);
    if (task.operation == Operation::forward) marks.compute_start = i + 1;
    if (task.operation == Operation::backward)
      marks.compute_start = std::min(marks.compute_start, i);
    searched = searched || task.operation == Operation::search_unused;
    if (fills_first(task) && marks.compute_end == nowhere) filled = i + 1;
    const bool launches =
        task.step != nobody || (is_collective(task.operation) && task.bucket != nobody &&
                                !schedule.buckets[static_cast<std::size_t>(task.bucket)].delayed);
    if (launches) marks.comm_start = std::min(marks.comm_start, i);
    // A static graph's first iteration communicates nothing before its used map: both marks are
    // there.
    const bool late = is_collective(task.operation) &&
                      schedule.work_of(task).message == Message::used_map &&
                      marks.comm_start == nowhere && !searched;
    if (late) marks.comm_start = i;
    // A comm hook's own waits (ZeRO's) are part of backward.
    const bool waits = task.operation == Operation::wait && task.bucket != nobody;
    if (late || (waits && task.step == nobody)) marks.compute_end = std::min(marks.compute_end, i);
    if (finishes_bucket(schedule, task)) marks.comm_end = i + 1;
  }
  // A comm hook that does nothing: the mark stands where it was called.
  if (marks.comm_start == nowhere) marks.comm_start = filled;
  marks.compute_start = std::min(marks.compute_start, count);
  marks.compute_end = std::min(marks.compute_end, count);
  return marks;
}

}  // namespace

std::optional<DdpStatistics> ddp_statistics(const Schedule& schedule, const Timeline& timeline,
                                            int rank) {
  if (schedule.logged.empty()) return std::nullopt;
  const auto& times = timeline.ranks.at(static_cast<std::size_t>(rank));
  const Marks marks = marks_of(schedule);
  // What the stream reaches once all before a task is done: a mark is an event enqueued there.
  std::vector<Instant> before{Instant{}};
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Stream stream = schedule.tasks[i].stream;
    const bool in_line = stream == Stream::compute || stream == Stream::host;
    before.push_back(std::max(before.back(), in_line ? times[i].end : times[i].enqueued));
  }
  DdpStatistics statistics;
  statistics.forward_compute = before[marks.compute_start] - before[marks.forward_start];
  statistics.backward_compute = before[marks.compute_end] - before[marks.compute_start];
  if (marks.comm_start == nowhere) return statistics;
  statistics.backward_comm = before[marks.comm_end] - before[marks.comm_start];
  const Duration overlap = before[marks.compute_end] - before[marks.comm_start];
  if (marks.comm_start < marks.compute_end && overlap >= Duration::zero())
    statistics.overlap = overlap;
  return statistics;
}

void DdpAverages::add(const DdpStatistics& sample) {
  ++samples_;
  average(forward_compute_, sample.forward_compute);
  average(backward_compute_, sample.backward_compute);
  average(backward_comm_, sample.backward_comm);
  average(overlap_, sample.overlap);
}

void DdpAverages::average(std::int64_t& average, std::optional<Duration> value) const {
  if (!value) return;
  const std::int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(*value).count();
  average = (ns + average * (samples_ - 1)) / samples_;
}

}  // namespace ddpsim
