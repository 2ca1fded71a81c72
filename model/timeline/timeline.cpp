#include "model/timeline/timeline.hpp"

#include <algorithm>

namespace ddpsim {

std::vector<Span> spans_of(const Schedule& schedule, const std::vector<TaskTimes>& times,
                           int rank) {
  std::vector<Span> spans;
  for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    const Stream stream = schedule.tasks[i].stream;
    const TaskTimes& at = times[i];
    if (stream == Stream::host) {
      if (at.end > at.issued) spans.push_back({Stream::host, rank, i, at.issued, at.end});
      continue;
    }
    if (at.enqueued > at.issued) spans.push_back({Stream::host, rank, i, at.issued, at.enqueued});
    if (at.end > at.start) spans.push_back({stream, rank, i, at.start, at.end});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.start < b.start;
  });
  return spans;
}

}  // namespace ddpsim
