#include "model/timeline/why.hpp"

#include <algorithm>

#include "model/base/index.hpp"
#include "model/timeline/busy_spans.hpp"

namespace ddpsim {
namespace {

/// The task that reduced each bucket last, and the collective of its communicator that made it
/// wait: the one before it, or, where several may be under way, the last to end before it began.
struct LastReduce {
  std::int32_t task = nobody, previous = nobody;
};

std::vector<LastReduce> last_reduces(const Schedule& schedule,
                                     const std::vector<TaskTimes>& times) {
  std::vector<LastReduce> last(schedule.buckets.size());
  std::vector<std::int32_t> collectives;
  const auto before = [&](std::size_t task) {
    constexpr std::size_t most = 64;
    std::int32_t found = nobody;
    const std::size_t first = collectives.size() - std::min(collectives.size(), most);
    for (std::size_t c = first; c < collectives.size(); ++c) {
      const auto each = static_cast<std::size_t>(collectives[c]);
      if (schedule.work_of(schedule.tasks[each]).communicator !=
          schedule.work_of(schedule.tasks[task]).communicator)
        continue;
      if (schedule.collectives_at_once > 1 && times[each].end > times[task].start) continue;
      if (found == nobody || times[each].end >= times[static_cast<std::size_t>(found)].end)
        found = collectives[c];
    }
    return found;
  };
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    if (!is_collective(task.operation)) continue;
    const auto index = static_cast<std::int32_t>(i);
    if (task.bucket != nobody) last[static_cast<std::size_t>(task.bucket)] = {index, before(i)};
    collectives.push_back(index);
  }
  return last;
}

/// When a collective can begin as far as this rank goes.
Instant arrival(const ExposedBucket& bucket) {
  return std::max({bucket.times.ready, bucket.called, bucket.previous, bucket.launched});
}

/// The rank that came last to a collective, and later than `rank` itself, which came at `arrived`.
int last_to_arrive(const Schedule& schedule, const Timeline& timeline, std::int32_t collective,
                   int rank, Instant arrived) {
  const Task& task = schedule.tasks[at(collective)];
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    const std::vector<TaskTimes>& times = timeline.ranks[r];
    Instant there = times[at(collective)].enqueued + timeline.detail_of(task).take_up;
    for (const std::uint32_t earlier : schedule.waits_for(task))
      there = std::max(there, times[earlier].end);
    if (there <= arrived) continue;
    arrived = there;
    rank = static_cast<int>(r);
  }
  return rank;
}

/// How much less of the bucket's all-reduce would be exposed if no other rank had come later than
/// this one: the same length, from the moment at which this rank was there.
Duration lost_to_slower_rank(const ExposedBucket& bucket, const BusySpans& busy) {
  const BucketTimes& times = bucket.times;
  const Instant arrived = arrival(bucket);
  if (arrived >= times.start) return {};
  const Duration late = times.start - arrived;
  const Duration less =
      idle_within(busy, times.start, times.end) - idle_within(busy, arrived, times.end - late);
  return std::clamp(less, Duration::zero(), std::min(times.exposed, late));
}

/// The waiting between ready and start goes to its causes, the latest first, as long as there is
/// exposed time to explain.
void explain(ExposedBucket& bucket, const BusySpans& busy) {
  struct Step {
    Instant at;
    Cause cause;
  };
  std::array steps{Step{bucket.called, Cause::turn}, Step{bucket.previous, Cause::previous},
                   Step{bucket.launched, Cause::launch}};
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.at < b.at; });
  Instant at = bucket.times.start;
  Duration unexplained = bucket.times.exposed;
  const auto since = [&](Instant before, Cause cause) {
    const Duration waited =
        std::clamp(at - std::max(before, bucket.times.ready), Duration::zero(), unexplained);
    bucket.exposed_by[static_cast<std::size_t>(cause)] = waited;
    unexplained -= waited;
    at = std::min(at, before);
  };
  unexplained -= lost_to_slower_rank(bucket, busy);
  bucket.exposed_by[static_cast<std::size_t>(Cause::slowest_rank)] =
      bucket.times.exposed - unexplained;
  at = std::min(at, steps[2].at);
  since(steps[1].at, steps[2].cause);
  since(steps[0].at, steps[1].cause);
  since(bucket.times.ready, steps[0].cause);
  bucket.exposed_by[static_cast<std::size_t>(Cause::gradients)] = unexplained;
  bucket.cause =
      static_cast<Cause>(std::max_element(bucket.exposed_by.begin(), bucket.exposed_by.end()) -
                         bucket.exposed_by.begin());
}

/// A bucket whose last collective is that of `last`: what held it up, and not yet what of it is
/// exposed by what.
ExposedBucket held_up(const Schedule& schedule, const Timeline& timeline,
                      const StepMetrics& metrics, int rank, std::size_t index,
                      const LastReduce& last) {
  const auto& times = timeline.ranks.at(at(rank));
  const Task& task = schedule.tasks[at(last.task)];
  const TaskTimes& its = times[at(last.task)];
  ExposedBucket bucket;
  bucket.bucket = index;
  bucket.times = metrics.buckets[index];
  for (const std::uint32_t earlier : schedule.waits_for(task))
    bucket.called = std::max(bucket.called, times[earlier].end);
  if (last.previous != nobody) bucket.previous = times[at(last.previous)].end;
  bucket.issued = its.issued;
  bucket.launched = its.enqueued + timeline.detail_of(task).take_up;
  bucket.last_rank = last_to_arrive(schedule, timeline, last.task, rank, arrival(bucket));
  return bucket;
}

}  // namespace

std::string_view name_of(Cause cause) {
  constexpr std::array<std::string_view, all_causes.size()> names{"gradients", "turn", "previous",
                                                                  "launch", "slowest rank"};
  return names[static_cast<std::size_t>(cause)];
}

std::vector<ExposedBucket> why_exposed(const Schedule& schedule, const Timeline& timeline,
                                       const StepMetrics& metrics, int rank) {
  const auto& times = timeline.ranks.at(static_cast<std::size_t>(rank));
  const std::vector<LastReduce> last = last_reduces(schedule, times);
  const BusySpans busy = busy_spans(schedule, times);
  std::vector<ExposedBucket> exposed;
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b) {
    if (last[b].task == nobody || metrics.buckets[b].exposed <= Duration::zero()) continue;
    exposed.push_back(held_up(schedule, timeline, metrics, rank, b, last[b]));
    explain(exposed.back(), busy);
  }
  return exposed;
}

std::vector<WaitForRank> waits_for_ranks(const Schedule& schedule, const Timeline& timeline,
                                         const StepMetrics& metrics, int rank) {
  const std::vector<LastReduce> last = last_reduces(schedule, timeline.ranks.at(at(rank)));
  std::vector<WaitForRank> waits;
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b) {
    if (last[b].task == nobody) continue;
    const ExposedBucket bucket = held_up(schedule, timeline, metrics, rank, b, last[b]);
    const Duration waited = std::max(Duration::zero(), bucket.times.start - arrival(bucket));
    waits.push_back({bucket.last_rank, bucket.last_rank == rank ? Duration::zero() : waited});
  }
  return waits;
}

}  // namespace ddpsim
