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

/// Does it only wait, or say that a gradient is there?
bool only_marks(const program::Action& action) {
  const auto* call = std::get_if<program::Call>(&action);
  return std::holds_alternative<program::Wait>(action) ||
         (call != nullptr && call->what == program::Call::What::hook);
}

}  // namespace

Breakdown break_down(const program::Job& job, const JobTimeline& timeline, std::size_t of) {
  const RankOfJob rank(job, timeline, of);
  const Instant zero{};
  BusySpans computing, communicating, waiting;
  // When a stream could take its next collective: the first of its lanes to be free.
  std::map<int, std::vector<Instant>> lanes;
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    const TaskTimes& at = rank.times[i];
    if (rank.communicates(task)) {
      auto& ends = lanes[task.stream];
      ends.resize(job.streams[task.stream].lanes);
      Instant& free = *std::min_element(ends.begin(), ends.end());
      Instant arrived = std::max(at.enqueued, free);
      for (const std::uint32_t earlier : rank.program.waits_for(i))
        arrived = std::max(arrived, rank.times[earlier].end);
      if (arrived < at.start) waiting.emplace_back(arrived, at.start);
      if (at.start < at.end) communicating.emplace_back(at.start, at.end);
      free = at.end;
    } else if (rank.moves(task)) {
      if (at.start < at.end) communicating.emplace_back(at.start, at.end);
    } else if (at.start < at.end && !only_marks(rank.action_of(task))) {
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
