#include "model/timeline/memory_times.hpp"

#include <algorithm>

namespace ddpsim {

Instant issued_at(const std::vector<TaskTimes>& times, std::uint32_t task) {
  if (task < times.size()) return times[task].issued;
  Instant end{};
  for (const TaskTimes& each : times) end = std::max(end, each.end);
  return end;
}

std::vector<MemoryPoint> memory_over_time(const program::MemoryAlong& memory,
                                          const std::vector<TaskTimes>& times) {
  std::vector<MemoryPoint> points{{Instant{}, memory.begin}};
  points.reserve(memory.changes.size() + 1);
  for (const program::MemoryAlong::Change& change : memory.changes) {
    MemoryPoint next = points.back();
    next.at = std::max(next.at, issued_at(times, change.before));
    next.bytes[change.holds] += change.bytes;
    points.push_back(next);
  }
  return points;
}

}  // namespace ddpsim
