#include "model/timeline/why.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "model/base/index.hpp"
#include "model/timeline/busy_spans.hpp"
#include "model/timeline/collective_waits.hpp"

namespace ddpsim {
namespace {

/// A collective of a bucket, and the one of its stream that made it wait: the one before it, or,
/// where several may be under way, the last to end before it began.
struct BucketCollective {
  std::uint32_t task = 0;
  std::optional<std::uint32_t> previous;
};

/// [bucket]: the collectives of its last micro-batch, in order; several of a comm hook or of sparse
/// gradients.
using BucketCollectives = std::vector<std::vector<BucketCollective>>;

class Collectives {
 public:
  Collectives(const RankOfJob& rank, std::size_t buckets) : rank_(rank), of_bucket_(buckets) {}

  BucketCollectives run() {
    for (std::uint32_t i = 0; i < rank_.times.size(); ++i)
      if (rank_.communicates(task(i))) add(i);
    return std::move(of_bucket_);
  }

 private:
  const program::Task& task(std::uint32_t index) const { return rank_.program.tasks[index]; }

  void add(std::uint32_t index) {
    const std::int32_t group = rank_.origin_of(task(index)).group;
    if (group != nobody) {
      std::vector<BucketCollective>& its = of_bucket_.at(at(group));
      if (!its.empty() && task(its.back().task).micro_batch != task(index).micro_batch) its.clear();
      its.push_back({index, before(index)});
    }
    all_.push_back(index);
  }

  std::optional<std::uint32_t> before(std::uint32_t index) const {
    constexpr std::size_t most = 64;
    const bool several = rank_.job.streams[task(index).stream].lanes > 1;
    std::optional<std::uint32_t> found;
    for (const std::uint32_t each : std::span(all_).last(std::min(all_.size(), most))) {
      if (task(each).stream != task(index).stream) continue;
      if (several && rank_.times[each].end > rank_.times[index].start) continue;
      if (!found || rank_.times[each].end >= rank_.times[*found].end) found = each;
    }
    return found;
  }

  const RankOfJob& rank_;
  std::vector<std::uint32_t> all_;
  BucketCollectives of_bucket_;
};

/// When a collective can begin as far as this rank goes.
Instant arrival(const ExposedBucket& bucket) {
  return std::max({bucket.times.ready, bucket.called, bucket.previous, bucket.launched});
}

/// `before_call`: what the wait until the collective is called counts for; `before_end`: what the
/// wait for the collective before it does.
void explain(ExposedBucket& bucket, const RankOfJob& rank, std::uint32_t collective,
             const BusySpans& busy, Cause before_call, Cause before_end) {
  std::array holds{HeldUntil{bucket.called, before_call}, HeldUntil{bucket.previous, before_end},
                   HeldUntil{bucket.launched, Cause::launch}};
  explain(bucket, holds, arrival(bucket), busy,
          {Cause::gradients, kernels_waiting(rank, collective, busy)});
}

/// What held up a collective of a bucket, and not yet what of it is exposed by what.
ExposedBucket held_up(const AllRanks& ranks, const StepMetrics& metrics, std::size_t index,
                      const BucketCollective& collective) {
  const RankOfJob& rank = ranks.own();
  const program::Task& task = rank.program.tasks[collective.task];
  const TaskTimes& its = rank.times[collective.task];
  ExposedBucket bucket;
  bucket.bucket = index;
  bucket.times = metrics.buckets[index];
  bucket.times.start = its.start;
  bucket.times.end = its.end;
  bucket.times.choice = rank.detail_of(task).choice;
  bucket.called = std::max(inputs_of(rank, collective.task), ranks.inputs_of_root(collective.task));
  if (collective.previous) bucket.previous = rank.times[*collective.previous].end;
  bucket.issued = its.issued;
  bucket.launched = its.enqueued + rank.detail_of(task).take_up;
  bucket.last_rank = ranks.last_to_arrive(collective.task, arrival(bucket));
  return bucket;
}

/// Is a collective called once its copy to the host has ended, rather than anything later?
bool waits_for_copy(const RankOfJob& rank, std::uint32_t collective) {
  bool copy = false;
  Instant called{};
  for (const std::uint32_t earlier : rank.program.waits_for(collective)) {
    if (rank.times[earlier].end < called) continue;
    called = rank.times[earlier].end;
    copy = rank.moves(rank.program.tasks[earlier]);
  }
  return copy;
}

/// A bucket's collectives, each explained by itself, as one.
ExposedBucket explained(const AllRanks& ranks, const StepMetrics& metrics, std::size_t index,
                        const std::vector<BucketCollective>& collectives, const BusySpans& busy) {
  ExposedBucket longest;
  std::array<Duration, all_causes.size()> sums{};
  const Duration copies = metrics.buckets[index].host_copies;
  Duration left = metrics.buckets[index].exposed - copies;
  sums[static_cast<std::size_t>(Cause::host_copies)] = copies;
  for (std::size_t c = collectives.size(); c-- > 0;) {
    const bool first = c == 0;
    ExposedBucket part = held_up(ranks, metrics, index, collectives[c]);
    part.times.exposed =
        first ? left : std::min(left, idle_within(busy, part.times.start, part.times.end));
    left -= part.times.exposed;
    // The hook's own earlier collective is one of its steps.
    const bool own_before = !first && collectives[c].previous == collectives[c - 1].task;
    const Cause before_call = waits_for_copy(ranks.own(), collectives[c].task) ? Cause::host_copies
                              : first                                          ? Cause::turn
                                                                               : Cause::hook;
    explain(part, ranks.own(), collectives[c].task, busy, before_call,
            own_before ? Cause::hook : Cause::previous);
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
      "gradients", "turn",         "previous", "launch",       "slowest rank", "host copies",
      "hook",      "kernels wait", "copy-out", "input buffer", "itself",       "one queue"};
  return names[static_cast<std::size_t>(cause)];
}

std::vector<ExposedBucket> why_exposed(const program::Job& job, const JobTimeline& timeline,
                                       const StepMetrics& metrics, std::size_t rank) {
  const AllRanks ranks(job, timeline, rank);
  const BucketCollectives collectives = Collectives(ranks.own(), metrics.buckets.size()).run();
  const BusySpans busy = busy_spans(ranks.own());
  std::vector<ExposedBucket> exposed;
  for (std::size_t b = 0; b < collectives.size(); ++b)
    if (!collectives[b].empty() && metrics.buckets[b].exposed > Duration::zero())
      exposed.push_back(explained(ranks, metrics, b, collectives[b], busy));
  return exposed;
}

std::vector<WaitForRank> waits_for_ranks(const program::Job& job, const JobTimeline& timeline,
                                         const StepMetrics& metrics, std::size_t rank) {
  const AllRanks ranks(job, timeline, rank);
  const BucketCollectives collectives = Collectives(ranks.own(), metrics.buckets.size()).run();
  std::vector<WaitForRank> waits;
  for (std::size_t b = 0; b < collectives.size(); ++b) {
    if (collectives[b].empty()) continue;
    const ExposedBucket bucket = held_up(ranks, metrics, b, collectives[b].back());
    const Duration waited = std::max(Duration::zero(), bucket.times.start - arrival(bucket));
    waits.push_back({bucket.last_rank, bucket.last_rank == rank ? Duration::zero() : waited});
  }
  return waits;
}

}  // namespace ddpsim
