#include "model/timeline/breakdown.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "model/timeline/busy_spans.hpp"

namespace ddpsim {
namespace {

/// How much of `wanted` was not in `taken` yet, which stays sorted and disjoint and now holds it.
Duration claim(BusySpans& taken, BusySpans wanted) {
  const Duration before = total_length(taken);
  wanted.insert(wanted.end(), taken.begin(), taken.end());
  taken = united(std::move(wanted));
  return total_length(taken) - before;
}

}  // namespace

Breakdown break_down(const Schedule& schedule, const Timeline& timeline, int rank) {
  const auto& times = timeline.ranks.at(static_cast<std::size_t>(rank));
  const Instant zero{};
  BusySpans computing, communicating, waiting;
  // When a communicator could take its next collective: the first of its threads to be free.
  std::map<int, std::vector<Instant>> threads;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    const TaskTimes& at = times[i];
    if (is_collective(task.operation)) {
      auto& ends = threads[schedule.work_of(task).communicator];
      ends.resize(static_cast<std::size_t>(schedule.collectives_at_once));
      Instant& free = *std::min_element(ends.begin(), ends.end());
      Instant arrived = std::max(at.enqueued, free);
      for (const std::uint32_t earlier : schedule.waits_for(task))
        arrived = std::max(arrived, times[earlier].end);
      if (arrived < at.start) waiting.emplace_back(arrived, at.start);
      if (at.start < at.end) communicating.emplace_back(at.start, at.end);
      free = at.end;
    } else if (is_transfer(task.operation)) {
      if (at.start < at.end) communicating.emplace_back(at.start, at.end);
    } else if (at.start < at.end && task.operation != Operation::hook &&
               task.operation != Operation::wait) {
      computing.emplace_back(at.start, at.end);
    }
  }
  BusySpans taken;
  Breakdown breakdown;
  breakdown.compute = claim(taken, std::move(computing));
  breakdown.communication = claim(taken, std::move(communicating));
  breakdown.waiting = claim(taken, std::move(waiting));
  breakdown.launch = claim(taken, {{zero, timeline.end}});
  return breakdown;
}

}  // namespace ddpsim
