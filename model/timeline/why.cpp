#include "model/timeline/why.hpp"

#include <algorithm>

#include "model/base/index.hpp"
#include "model/timeline/busy_spans.hpp"

namespace ddpsim {
namespace {

/// A collective of a bucket, and the one of its communicator that made it wait: the one before it,
/// or, where several may be under way, the last to end before it began.
struct BucketCollective {
  std::int32_t task = nobody, previous = nobody;
};

/// [bucket]: the collectives of its last micro-batch, in order; several of a comm hook or of sparse
/// gradients.
using BucketCollectives = std::vector<std::vector<BucketCollective>>;

BucketCollectives collectives_of_buckets(const Schedule& schedule,
                                         const std::vector<TaskTimes>& times) {
  BucketCollectives of_bucket(schedule.buckets.size());
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
    if (task.bucket != nobody) {
      std::vector<BucketCollective>& its = of_bucket[at(task.bucket)];
      if (begins_bucket(schedule, task)) its.clear();
      its.push_back({index, before(i)});
    }
    collectives.push_back(index);
  }
  return of_bucket;
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

/// How much less of the collective would be exposed if no other rank had come later than this one:
/// the same length, from the moment at which this rank was there.
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
/// exposed time to explain. `before_call`: what the wait until the collective is called counts for;
/// `before_end`: what the wait for the collective before it does.
void explain(ExposedBucket& bucket, const BusySpans& busy, Cause before_call, Cause before_end) {
  struct Step {
    Instant at;
    Cause cause;
  };
  std::array steps{Step{bucket.called, before_call}, Step{bucket.previous, before_end},
                   Step{bucket.launched, Cause::launch}};
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.at < b.at; });
  Instant at = bucket.times.start;
  Duration unexplained = bucket.times.exposed;
  const auto since = [&](Instant before, Cause cause) {
    const Duration waited =
        std::clamp(at - std::max(before, bucket.times.ready), Duration::zero(), unexplained);
    bucket.exposed_by[static_cast<std::size_t>(cause)] += waited;
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
}

/// What held up a collective of a bucket, and not yet what of it is exposed by what.
ExposedBucket held_up(const Schedule& schedule, const Timeline& timeline,
                      const StepMetrics& metrics, int rank, std::size_t index,
                      const BucketCollective& collective) {
  const auto& times = timeline.ranks.at(at(rank));
  const Task& task = schedule.tasks[at(collective.task)];
  const TaskTimes& its = times[at(collective.task)];
  ExposedBucket bucket;
  bucket.bucket = index;
  bucket.times = metrics.buckets[index];
  bucket.times.start = its.start;
  bucket.times.end = its.end;
  bucket.times.choice = timeline.detail_of(task).choice;
  for (const std::uint32_t earlier : schedule.waits_for(task)) {
    bucket.called = std::max(bucket.called, times[earlier].end);
    if (task.owner != nobody && at(task.owner) < timeline.ranks.size())
      bucket.called = std::max(bucket.called, timeline.ranks[at(task.owner)][earlier].end);
  }
  if (collective.previous != nobody) bucket.previous = times[at(collective.previous)].end;
  bucket.issued = its.issued;
  bucket.launched = its.enqueued + timeline.detail_of(task).take_up;
  bucket.last_rank = last_to_arrive(schedule, timeline, collective.task, rank, arrival(bucket));
  return bucket;
}

/// Is a collective called once its copy to the host has ended, rather than anything later?
bool waits_for_copy(const Schedule& schedule, const std::vector<TaskTimes>& times,
                    std::int32_t collective) {
  bool copy = false;
  Instant called{};
  for (const std::uint32_t earlier : schedule.waits_for(schedule.tasks[at(collective)])) {
    if (times[earlier].end < called) continue;
    called = times[earlier].end;
    copy = is_transfer(schedule.tasks[earlier].operation);
  }
  return copy;
}

/// A bucket's collectives, each explained by itself, as one.
ExposedBucket explained(const Schedule& schedule, const Timeline& timeline,
                        const StepMetrics& metrics, int rank, std::size_t index,
                        const std::vector<BucketCollective>& collectives, const BusySpans& busy) {
  ExposedBucket longest;
  std::array<Duration, all_causes.size()> sums{};
  const Duration copies = metrics.buckets[index].host_copies;
  Duration left = metrics.buckets[index].exposed - copies;
  sums[static_cast<std::size_t>(Cause::host_copies)] = copies;
  for (std::size_t c = collectives.size(); c-- > 0;) {
    const bool first = c == 0;
    ExposedBucket part = held_up(schedule, timeline, metrics, rank, index, collectives[c]);
    part.times.exposed =
        first ? left : std::min(left, idle_within(busy, part.times.start, part.times.end));
    left -= part.times.exposed;
    // The hook's own earlier collective is one of its steps.
    const bool own_before = !first && collectives[c].previous == collectives[c - 1].task;
    const Cause before_call =
        waits_for_copy(schedule, timeline.ranks.at(at(rank)), collectives[c].task)
            ? Cause::host_copies
        : first ? Cause::turn
                : Cause::hook;
    explain(part, busy, before_call, own_before ? Cause::hook : Cause::previous);
    for (std::size_t cause = 0; cause < sums.size(); ++cause) sums[cause] += part.exposed_by[cause];
    if (c + 1 == collectives.size() || part.times.exposed > longest.times.exposed) longest = part;
  }
  longest.collectives = static_cast<int>(collectives.size());
  longest.times.exposed = metrics.buckets[index].exposed;
  longest.exposed_by = sums;
  longest.cause = static_cast<Cause>(std::max_element(sums.begin(), sums.end()) - sums.begin());
  return longest;
}

}  // namespace

std::string_view name_of(Cause cause) {
  constexpr std::array<std::string_view, all_causes.size()> names{
      "gradients", "turn", "previous", "launch", "slowest rank", "host copies", "hook"};
  return names[static_cast<std::size_t>(cause)];
}

std::vector<ExposedBucket> why_exposed(const Schedule& schedule, const Timeline& timeline,
                                       const StepMetrics& metrics, int rank) {
  const auto& times = timeline.ranks.at(static_cast<std::size_t>(rank));
  const BucketCollectives collectives = collectives_of_buckets(schedule, times);
  const BusySpans busy = busy_spans(schedule, times);
  std::vector<ExposedBucket> exposed;
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b)
    if (!collectives[b].empty() && metrics.buckets[b].exposed > Duration::zero())
      exposed.push_back(explained(schedule, timeline, metrics, rank, b, collectives[b], busy));
  return exposed;
}

std::vector<WaitForRank> waits_for_ranks(const Schedule& schedule, const Timeline& timeline,
                                         const StepMetrics& metrics, int rank) {
  const BucketCollectives collectives =
      collectives_of_buckets(schedule, timeline.ranks.at(at(rank)));
  std::vector<WaitForRank> waits;
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b) {
    if (collectives[b].empty()) continue;
    const ExposedBucket bucket =
        held_up(schedule, timeline, metrics, rank, b, collectives[b].back());
    const Duration waited = std::max(Duration::zero(), bucket.times.start - arrival(bucket));
    waits.push_back({bucket.last_rank, bucket.last_rank == rank ? Duration::zero() : waited});
  }
  return waits;
}

}  // namespace ddpsim
