#include "model/timeline/busy_spans.hpp"

#include <algorithm>

namespace ddpsim {

namespace {

void append(BusySpans& busy, const TaskTimes& at) {
  if (!busy.empty() && busy.back().second == at.start)
    busy.back().second = at.end;
  else
    busy.emplace_back(at.start, at.end);
}

}  // namespace

BusySpans busy_spans(const RankOfJob& rank) {
  BusySpans busy;
  for (std::size_t i = 0; i < rank.times.size(); ++i)
    if (rank.computes(rank.program.tasks[i])) append(busy, rank.times[i]);
  return busy;
}

BusySpans united(BusySpans spans) {
  std::sort(spans.begin(), spans.end());
  BusySpans merged;
  for (const auto& [from, to] : spans) {
    if (!merged.empty() && from <= merged.back().second)
      merged.back().second = std::max(merged.back().second, to);
    else
      merged.emplace_back(from, to);
  }
  return merged;
}

Duration total_length(const BusySpans& spans) {
  Duration sum{};
  for (const auto& [from, to] : spans) sum += to - from;
  return sum;
}

Duration idle_within(const BusySpans& busy, Instant from, Instant to) {
  Duration idle = to - from;
  auto span = std::lower_bound(busy.begin(), busy.end(), from,
                               [](const auto& s, Instant at) { return s.second <= at; });
  for (; span != busy.end() && span->first < to; ++span)
    idle -= std::min(span->second, to) - std::max(span->first, from);
  return idle;
}

}  // namespace ddpsim
