#pragma once

#include <ostream>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/timeline/timeline.hpp"

/// Schedules written task by task, and what became of them.
namespace ddpsim::fixtures {

inline Task kernel(Duration work, float memory_fraction = 0) {
  Task task;
  task.work = work;
  task.memory_fraction = memory_fraction;
  return task;
}

inline Task collective(Duration work, Interference beside = {}) {
  Task task;
  task.operation = Operation::all_reduce;
  task.stream = Stream::communication;
  task.work = work;
  task.beside = beside;
  task.bucket = 0;
  return task;
}

/// The host is busy for `time`, without occupying the device.
inline Task host(Duration time) {
  Task task;
  task.operation = Operation::hook;
  task.stream = Stream::host;
  task.host = time;
  return task;
}

/// A kernel that runs on the host's own thread.
inline Task host_kernel(Duration work) {
  Task task = kernel(work);
  task.stream = Stream::host;
  return task;
}

/// A place in the compute stream behind what it waits for.
inline Task wait() {
  Task task;
  task.operation = Operation::wait;
  return task;
}

/// `task`, which the host enqueues in `host` by that many launches; `last` of its work can only run
/// once the last launch is in.
inline Task launched(Task task, Duration host, int launches = 1, Duration last = {}) {
  task.host = host;
  task.launches = launches;
  task.last_launch = last;
  return task;
}

/// `task`, before which the host stands still until what it waits for has ended.
inline Task blocking(Task task) {
  task.host_waits = true;
  return task;
}

struct Script {
  Schedule schedule;

  Script() { schedule.buckets.resize(1); }

  std::uint32_t add(Task task, const std::vector<std::uint32_t>& after = {}) {
    task.after_begin = static_cast<std::uint32_t>(schedule.after.size());
    task.after_count = static_cast<std::uint32_t>(after.size());
    schedule.after.insert(schedule.after.end(), after.begin(), after.end());
    schedule.tasks.push_back(task);
    return static_cast<std::uint32_t>(schedule.tasks.size() - 1);
  }
};

/// From when to when, counted from the start of the step.
struct Window {
  Duration from{}, to{};
  bool operator==(const Window&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Window& window) {
  return out << '[' << in_ms(window.from) << ", " << in_ms(window.to) << "] ms";
}

inline Window work_of(const Timeline& timeline, std::uint32_t task, std::size_t rank = 0) {
  const TaskTimes& at = timeline.ranks.at(rank).at(task);
  return {at.start.time_since_epoch(), at.end.time_since_epoch()};
}

inline Window enqueueing_of(const Timeline& timeline, std::uint32_t task, std::size_t rank = 0) {
  const TaskTimes& at = timeline.ranks.at(rank).at(task);
  return {at.issued.time_since_epoch(), at.enqueued.time_since_epoch()};
}

inline Duration length(const Timeline& timeline) {
  return timeline.end.time_since_epoch();
}

inline bool same(const Timeline& a, const Timeline& b) {
  if (a.end != b.end || a.ranks.size() != b.ranks.size()) return false;
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    if (a.ranks[r].size() != b.ranks[r].size()) return false;
    for (std::size_t i = 0; i < a.ranks[r].size(); ++i) {
      const TaskTimes &one = a.ranks[r][i], &other = b.ranks[r][i];
      if (one.issued != other.issued || one.enqueued != other.enqueued ||
          one.start != other.start || one.end != other.end)
        return false;
    }
  }
  return true;
}

}  // namespace ddpsim::fixtures
