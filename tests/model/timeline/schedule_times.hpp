#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// The times of a schedule's tasks, of a rank whose program has left some out.
class Passing {
 public:
  Passing(const Schedule& schedule, std::vector<TaskTimes>& times)
      : schedule_(schedule), times_(times) {}

  void fill(const std::vector<bool>& done) {
    for (std::size_t t = 0; t < times_.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      Instant& stream = streams_[static_cast<std::size_t>(task.stream)];
      if (!done[t]) {
        Instant at = std::max(host_, stream);
        if (task.operation != Operation::wait)  // it waits for what its owner alone waits for
          for (const std::uint32_t earlier : schedule_.waits_for(task))
            at = std::max(at, times_[earlier].end);
        times_[t].issued = times_[t].enqueued = host_;
        times_[t].start = times_[t].end = at;
      }
      host_ = task.stream == Stream::host ? times_[t].end : times_[t].enqueued;
      stream = std::max(stream, times_[t].end);
    }
  }

 private:
  const Schedule& schedule_;
  std::vector<TaskTimes>& times_;
  Instant host_{};
  std::array<Instant, all_streams.size()> streams_{};  // their latest ends
};

/// The times of a schedule's tasks, of a rank that did them by a program of the schedule's job. Of
/// a task that another rank does a rank has the moment at which it could have begun.
inline std::vector<TaskTimes> times_of(const Schedule& schedule, const program::Program& program,
                                       const std::vector<TaskTimes>& of_program) {
  std::vector<TaskTimes> times(schedule.tasks.size());
  std::vector<bool> done(times.size(), false);
  for (std::size_t place = 0; place < of_program.size(); ++place) {
    const std::uint32_t task = program.tasks[place].deed;
    if (task >= times.size()) continue;  // a host's wait, which is part of the next task
    times[task] = of_program[place];
    done[task] = true;
  }
  if (std::ranges::find(done, false) != done.end()) Passing(schedule, times).fill(done);
  return times;
}

/// And back: of each rank of the job the times of its tasks. Where the host waits before a task it
/// has the moment at which it began that task.
inline JobTimeline timeline_of(const Schedule& schedule, const program::Job& job,
                               const Timeline& timeline) {
  JobTimeline result;
  result.end = timeline.end;
  if (!timeline.details.empty()) {
    result.details.push_back(timeline.details);
    result.details.front().resize(job.works.size());
  }
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const program::Program& program = job.programs[job.program_of.at(rank)];
    std::vector<TaskTimes>& times = result.classes.emplace_back(program.tasks.size());
    result.class_of.push_back(static_cast<std::uint32_t>(rank));
    if (!timeline.details.empty()) result.details_of.push_back(0);
    Instant begun = timeline.end;  // the host, with the task behind it
    for (std::size_t place = times.size(); place-- > 0;) {
      const std::uint32_t task = program.tasks[place].deed;
      times[place] = task < schedule.tasks.size() ? timeline.ranks[rank][task]
                                                  : TaskTimes{begun, begun, begun, begun};
      begun = times[place].issued;
    }
  }
  return result;
}

}  // namespace ddpsim
