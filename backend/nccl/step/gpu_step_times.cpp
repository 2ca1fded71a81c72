#include "backend/nccl/step/gpu_step_times.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "backend/nccl/step/nccl_profiler.hpp"
#include "backend/nccl/step/step_events.hpp"

namespace ddpsim {
namespace {

/// How far the times of events and of the GPU's own clock may differ for one instant.
constexpr Duration clock_error = std::chrono::microseconds{50};
/// How long reports of the profiler interface may take to reach the host.
constexpr std::chrono::milliseconds longest_report{100};

/// When the collectives ran, by the profiler interface; waits until all have been reported.
std::vector<CollectiveSpan> spans_of(std::size_t collectives) {
  const auto deadline = std::chrono::steady_clock::now() + longest_report;
  std::vector<CollectiveSpan> spans;
  while ((spans = take_collective_spans()).empty() && collectives > 0 &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  return spans;
}

}  // namespace

void read_events(const Schedule& schedule, const GpuStepClock& clock,
                 std::vector<TaskTimes>& times) {
  std::array<Instant, all_streams.size()> free{};
  free[static_cast<std::size_t>(Stream::compute)] = clock.instant_of(last_round_event);
  for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    TaskTimes& of_task = times[i];
    if (task.stream == Stream::host) {
      of_task.start = of_task.issued;
      continue;
    }
    if (!enqueues(task)) continue;
    of_task.end = clock.instant_of(end_event(i));
    Instant& available = free[static_cast<std::size_t>(task.stream)];
    of_task.start =
        std::max(available, of_task.issued + (of_task.enqueued - of_task.issued) /
                                                 std::max(1, schedule.work_of(task).launches));
    if (is_collective(task.operation)) {
      of_task.start = std::max(of_task.start, clock.instant_of(start_event(i)));
    } else {
      for (const std::uint32_t earlier : schedule.waits_for(task))
        of_task.start = std::max(of_task.start, times[earlier].end);
      if (task.operation == Operation::wait) of_task.start = of_task.end;
    }
    of_task.start = std::min(of_task.start, of_task.end);
    available = of_task.end;
  }
}

void read_profiler(const Schedule& schedule, const GpuStepClock& clock, std::uint64_t noted,
                   std::vector<TaskTimes>& times) {
  std::vector<std::uint32_t> collectives;
  for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i)
    if (is_collective(schedule.tasks[i].operation) &&
        schedule.work_of(schedule.tasks[i]).payload > Bytes{})
      collectives.push_back(i);
  const std::vector<CollectiveSpan> spans = spans_of(collectives.size());
  if (spans.size() != collectives.size()) return;
  for (std::size_t c = 0; c < spans.size(); ++c) {
    TaskTimes& of_task = times[collectives[c]];
    const Instant start = clock.instant_at(spans[c].start, noted);
    const Instant stop = clock.instant_at(spans[c].stop, noted);
    if (start + clock_error < of_task.start || stop > of_task.end + clock_error || stop < start)
      continue;
    of_task.start = std::clamp(start, of_task.start, of_task.end);
    of_task.end = std::clamp(stop, of_task.start, of_task.end);
  }
}

}  // namespace ddpsim
