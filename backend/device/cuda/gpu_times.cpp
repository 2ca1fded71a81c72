#include "backend/device/cuda/gpu_times.hpp"

#include <algorithm>
#include <thread>
#include <variant>

#include "backend/device/cuda/nccl_profiler.hpp"

namespace ddpsim {

using execute::Running;

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

/// Is it one collective of NCCL's? All to all is messages.
bool is_reported(const program::Action& action) {
  const auto* collective = std::get_if<program::Collective>(&action);
  return collective != nullptr && collective->what != program::Collectives::all_to_all &&
         !collective->to.empty();
}

}  // namespace

void read_events(const Running& running, const std::vector<bool>& handed_over,
                 const GpuEvents& events, const GpuClock& clock) {
  const program::Program& program = running.program;
  std::vector<Instant> free(running.job.streams.size());
  if (program.rounds > 1)
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t)
      if (handed_over[t])
        free[program.tasks[t].stream] = clock.instant_of(GpuEvents::round(program.tasks[t].stream));
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    if (!handed_over[t]) continue;
    const program::Task& task = program.tasks[t];
    TaskTimes& times = running.times[t];
    times.end = clock.instant_of(events.end(t));
    Instant& available = free[task.stream];
    times.start =
        std::max(available, times.issued + (times.enqueued - times.issued) /
                                               std::max(1, running.job.works[task.work].launches));
    if (running.communicates(t)) {
      times.start = std::max(times.start, clock.instant_of(events.start(t)));
    } else {
      for (const std::uint32_t earlier : program.waits_for(t))
        times.start = std::max(times.start, running.times[earlier].end);
      if (std::holds_alternative<program::Wait>(running.action_of(t))) times.start = times.end;
    }
    times.start = std::min(times.start, times.end);
    available = times.end;
  }
}

void read_profiler(const Running& running, const GpuClock& clock, std::uint64_t noted) {
  std::vector<std::uint32_t> collectives;
  for (std::uint32_t t = 0; t < running.program.tasks.size(); ++t)
    if (is_reported(running.action_of(t))) collectives.push_back(t);
  if (collectives.empty()) return;
  const std::vector<CollectiveSpan> spans = spans_of(collectives.size());
  if (spans.size() != collectives.size()) return;
  for (std::size_t c = 0; c < spans.size(); ++c) {
    TaskTimes& times = running.times[collectives[c]];
    const Instant start = clock.instant_at(spans[c].start, noted);
    const Instant stop = clock.instant_at(spans[c].stop, noted);
    if (start + clock_error < times.start || stop > times.end + clock_error || stop < start)
      continue;
    times.start = std::clamp(start, times.start, times.end);
    times.end = std::clamp(stop, times.start, times.end);
  }
}

}  // namespace ddpsim
