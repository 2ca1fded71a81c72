#include "sim/predict/schedule_times.hpp"

#include <algorithm>
#include <array>

#include "model/base/index.hpp"
#include "sim/engine/price.hpp"

namespace ddpsim {
namespace {

bool is_ordinary(const CostModel& costs, int rank) {
  const RankException* exception = exception_of(costs.exceptions, rank);
  return exception == nullptr || !exception->computes_otherwise();
}

/// A rank of the job that is as this one.
std::size_t rank_like(const SimulatedRank& simulated, const CostModel& costs, std::size_t ranks) {
  const int slowest = slowest_rank_of(costs, ranks);
  if (simulated.exception) return at(simulated.rank);
  if (simulated.slowest) return at(slowest);
  int rank = simulated.rank;
  while (rank + 1 < static_cast<int>(ranks) && (!is_ordinary(costs, rank) || rank == slowest))
    ++rank;
  return at(rank);
}

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

}  // namespace

Timeline timeline_of(const Schedule& schedule, const program::Job& job, const JobTimeline& timeline,
                     std::span<const SimulatedRank> ranks, const CostModel& costs) {
  const bool different = different_ranks(schedule, costs.ranks) > 1;
  Timeline result;
  result.end = timeline.end;
  for (const SimulatedRank& each : ranks) {
    const RankOfJob rank(job, timeline, rank_like(each, costs, job.ranks()));
    if (result.details.empty() && rank.details != nullptr) result.details = *rank.details;
    std::vector<TaskTimes>& times = result.ranks.emplace_back(schedule.tasks.size());
    std::vector<bool> done(different ? times.size() : 0, false);
    for (std::size_t place = 0; place < rank.times.size(); ++place) {
      const std::uint32_t task = rank.program.tasks[place].deed;
      if (task >= times.size()) continue;  // a host's wait, which is part of the next task
      times[task] = rank.times[place];
      if (different) done[task] = true;
    }
    if (different) Passing(schedule, times).fill(done);
  }
  return result;
}

}  // namespace ddpsim
