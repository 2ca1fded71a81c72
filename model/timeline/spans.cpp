#include "model/timeline/spans.hpp"

#include <algorithm>
#include <tuple>

namespace ddpsim {

std::vector<StreamKind> stream_kinds(const RankOfJob& rank) {
  std::vector<StreamKind> kinds;
  for (const program::Stream& stream : rank.job.streams)
    kinds.push_back(stream.beside ? StreamKind::side : StreamKind::compute);
  for (const program::Task& task : rank.program.tasks) {
    StreamKind& kind = kinds[task.stream];
    if (rank.communicates(task))
      kind = StreamKind::communication;
    else if (rank.moves(task) && kind == StreamKind::side)
      kind = StreamKind::copies;
  }
  if (!kinds.empty()) kinds.front() = StreamKind::host;
  return kinds;
}

std::vector<Span> spans_of(const RankOfJob& rank) {
  std::vector<Span> spans;
  for (std::uint32_t i = 0; i < rank.program.tasks.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if (rank.is_part_of_another(task)) continue;
    const TaskTimes& at = rank.times[i];
    if (task.stream == 0) {
      if (at.end > at.issued) spans.push_back({0, i, at.issued, at.end});
      continue;
    }
    if (at.enqueued > at.issued) spans.push_back({0, i, at.issued, at.enqueued});
    if (at.end > at.start) spans.push_back({task.stream, i, at.start, at.end});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.stream, a.start) < std::tie(b.stream, b.start);
  });
  return spans;
}

}  // namespace ddpsim
