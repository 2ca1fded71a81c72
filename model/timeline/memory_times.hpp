#pragma once

#include <vector>

#include "model/program/memory_along.hpp"
#include "model/timeline/task_times.hpp"

namespace ddpsim {

/// When the host is about to issue a task; of the number of all tasks: when the last one has ended.
Instant issued_at(const std::vector<TaskTimes>& times, std::uint32_t task);

/// What a rank holds from one instant on.
struct MemoryPoint {
  Instant at{};
  program::MemoryByKind bytes;
};

/// The memory of a rank that ran the program at those times, in order: one point for each time that
/// some comes or goes, the first at the step's begin. Points of one instant follow each other as
/// the host's work does.
std::vector<MemoryPoint> memory_over_time(const program::MemoryAlong& memory,
                                          const std::vector<TaskTimes>& times);

}  // namespace ddpsim
