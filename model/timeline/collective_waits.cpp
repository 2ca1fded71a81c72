#include "model/timeline/collective_waits.hpp"

#include <algorithm>

#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// How much less of the collective would be exposed if no other rank had come later than this one:
/// the same length, from the moment at which this rank was there.
Duration lost_to_slower_rank(const BucketTimes& times, Instant arrived, const BusySpans& busy) {
  if (arrived >= times.start) return {};
  const Duration late = times.start - arrived;
  const Duration less =
      idle_within(busy, times.start, times.end) - idle_within(busy, arrived, times.end - late);
  return std::clamp(less, Duration::zero(), std::min(times.exposed, late));
}

bool waits(const RankOfJob& rank, std::uint32_t task) {
  return std::holds_alternative<program::Wait>(rank.action_of(rank.program.tasks[task]));
}

bool is_of_kernels(const RankOfJob& rank, std::uint32_t task) {
  const program::Task& its = rank.program.tasks[task];
  return !rank.job.streams[its.stream].beside && !rank.communicates(its);
}

/// The first task of the stream of kernels that waits for the collective, or for what is done with
/// its result beside kernels.
std::optional<std::uint32_t> first_behind(const RankOfJob& rank, std::uint32_t collective) {
  std::vector<std::uint32_t> results{collective};
  for (std::uint32_t i = collective + 1; i < rank.program.tasks.size(); ++i) {
    const auto after = rank.program.waits_for(i);
    if (std::ranges::none_of(after, [&](std::uint32_t each) {
          return std::ranges::find(results, each) != results.end();
        }))
      continue;
    if (is_of_kernels(rank, i)) return i;
    if (!rank.communicates(rank.program.tasks[i])) results.push_back(i);
  }
  return std::nullopt;
}

/// Is the collective's result copied out at all, and by what?
std::optional<std::uint32_t> copy_out_of(const RankOfJob& rank, std::uint32_t collective,
                                         std::uint32_t begin) {
  const auto* sent =
      std::get_if<program::Collective>(&rank.action_of(rank.program.tasks[collective]));
  for (std::uint32_t i = begin; sent != nullptr && i < rank.program.tasks.size(); ++i)
    if (const auto* copy = std::get_if<program::Unchunk>(&rank.action_of(rank.program.tasks[i]));
        copy != nullptr && copy->from.buffer == sent->to.buffer)
      return i;
  return std::nullopt;
}

}  // namespace

KernelsWaiting kernels_waiting(const RankOfJob& rank, std::uint32_t collective,
                               const BusySpans& busy) {
  const auto behind = first_behind(rank, collective);
  if (!behind) return {};
  const auto& tasks = rank.program.tasks;
  const bool gathers = rank.origin_of(tasks[collective]).purpose == program::Purpose::parameters;
  std::uint32_t needed = static_cast<std::uint32_t>(tasks.size());  // by what begins there
  if (gathers) {
    const auto copy = copy_out_of(rank, collective, *behind);
    if (!copy) return {};
    needed = *copy;
  }
  const auto is_of_pass = [&](std::uint32_t task) {
    const program::Pass pass = rank.origin_of(tasks[task]).pass;
    return is_of_kernels(rank, task) && tasks[task].micro_batch == tasks[collective].micro_batch &&
           (pass == program::Pass::backward || (gathers && pass == program::Pass::forward));
  };
  std::uint32_t first = *behind;
  while (first < needed && !is_of_pass(first)) ++first;
  if (first >= needed) return {};
  std::uint32_t last = first;
  for (std::uint32_t i = first; i < needed; ++i)
    if (is_of_pass(i)) last = i;
  Instant free = rank.times[collective].start;  // of what else the stream waits for
  for (std::uint32_t i = *behind; i-- > 0;)
    if (is_of_kernels(rank, i) && tasks[i].stream == tasks[*behind].stream) {
      free = std::max(free, rank.times[i].end);
      break;
    }
  if (tasks[first].stream != 0) free = std::max(free, rank.times[first].enqueued);
  const Instant begin = rank.times[first].start, end = rank.times[last].end;
  KernelsWaiting waiting;
  waiting.most = std::max(Duration::zero(), std::min(rank.times[collective].end - free,
                                                     end - begin - idle_within(busy, begin, end)));
  if (!waits(rank, *behind)) waiting.cause = Cause::one_queue;
  return waiting;
}

void explain(ExposedBucket& told, std::span<HeldUntil> holds, Instant arrival,
             const BusySpans& busy, const RestOfExposed& rest) {
  std::stable_sort(holds.begin(), holds.end(),
                   [](const HeldUntil& a, const HeldUntil& b) { return a.at < b.at; });
  Instant at = told.times.start;
  Duration unexplained = told.times.exposed - lost_to_slower_rank(told.times, arrival, busy);
  told.exposed_by[static_cast<std::size_t>(Cause::slowest_rank)] = told.times.exposed - unexplained;
  if (!holds.empty()) at = std::min(at, holds.back().at);
  for (std::size_t i = holds.size(); i-- > 0;) {
    const Instant before = i > 0 ? holds[i - 1].at : told.times.ready;
    const Duration waited =
        std::clamp(at - std::max(before, told.times.ready), Duration::zero(), unexplained);
    told.exposed_by[static_cast<std::size_t>(holds[i].cause)] += waited;
    unexplained -= waited;
    at = std::min(at, before);
  }
  const Duration waiting = std::min(unexplained, rest.waiting.most);
  told.exposed_by[static_cast<std::size_t>(rest.waiting.cause)] += waiting;
  told.exposed_by[static_cast<std::size_t>(rest.cause)] += unexplained - waiting;
}

Instant inputs_of(const RankOfJob& rank, std::uint32_t task) {
  Instant there{};
  for (const std::uint32_t earlier : rank.program.waits_for(task))
    there = std::max(there, rank.times[earlier].end);
  return there;
}

AllRanks::AllRanks(const program::Job& job, const JobTimeline& timeline, std::size_t rank)
    : timeline_(timeline), own_(job, timeline, rank), number_(rank) {
  for (const std::size_t first : first_ranks(timeline)) {
    firsts_.push_back(first == first_of_own() ? rank : first);
    ranks_.emplace_back(job, timeline, firsts_.back());
  }
}

std::size_t AllRanks::last_to_arrive(std::uint32_t collective, Instant arrived) const {
  std::size_t last = number_;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto theirs = place_of(ranks_[r], collective);
    if (!theirs) continue;
    const RankOfJob& rank = ranks_[r];
    const Instant launched =
        rank.times[*theirs].enqueued + rank.detail_of(rank.program.tasks[*theirs]).take_up;
    const Instant there = std::max(launched, inputs_of(rank, *theirs));
    if (there <= arrived) continue;
    arrived = there;
    last = firsts_[r];
  }
  return last;
}

Instant AllRanks::inputs_of_root(std::uint32_t collective) const {
  const auto* sent =
      std::get_if<program::Collective>(&own_.action_of(own_.program.tasks[collective]));
  if (sent == nullptr || sent->what != program::Collectives::broadcast) return {};
  const program::Communicator& communicator = own_.job.communicators[at(sent->communicator)];
  const auto mine = membership(communicator, static_cast<std::int32_t>(number_));
  if (mine.group == nullptr || at(sent->root) >= mine.group->size()) return {};
  const std::size_t root = at((*mine.group)[at(sent->root)]);
  if (root >= timeline_.class_of.size()) return {};  // it was not measured
  const RankOfJob& rank = ranks_[timeline_.class_of[root]];
  const auto theirs = place_of(rank, collective);
  return theirs ? inputs_of(rank, *theirs) : Instant{};
}

std::optional<std::uint32_t> AllRanks::place_of(const RankOfJob& rank,
                                                std::uint32_t collective) const {
  if (&rank.program == &own_.program) return collective;
  const std::uint32_t deed = own_.program.tasks[collective].deed;
  const auto& tasks = rank.program.tasks;
  const auto found = std::ranges::find(tasks, deed, &program::Task::deed);
  if (found == tasks.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - tasks.begin());
}

}  // namespace ddpsim
