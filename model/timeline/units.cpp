#include "model/timeline/units.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "model/base/index.hpp"
#include "model/timeline/collective_waits.hpp"

namespace ddpsim {
namespace {

using Kind = UnitCollectiveKind;
using program::Pass;
using program::Purpose;

/// Where in the program of a rank its passes end.
struct PassEnds {
  std::map<std::int16_t, std::uint32_t> forward;  ///< [micro-batch] its last forward kernel
  std::uint32_t optimizer = ~std::uint32_t{0};    ///< the first kernel of the optimizer
};

PassEnds ends_of_passes(const RankOfJob& rank) {
  PassEnds ends;
  for (std::uint32_t i = 0; i < rank.program.tasks.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    const Pass pass = rank.origin_of(task).pass;
    if (pass == Pass::forward) ends.forward[task.micro_batch] = i;
    if (pass == Pass::optimizer) ends.optimizer = std::min(ends.optimizer, i);
  }
  return ends;
}

bool is_gather(Operation operation) {
  return operation == Operation::all_gather || operation == Operation::broadcast;
}

/// Do kernels of the passes wait for collectives themselves, not for what makes use of them?
bool is_in_one_queue(const RankOfJob& rank) {
  for (std::uint32_t i = 0; i < rank.program.tasks.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    const auto communicates = [&](std::uint32_t each) {
      return rank.communicates(rank.program.tasks[each]);
    };
    const Pass pass = rank.origin_of(task).pass;
    if ((pass == Pass::forward || pass == Pass::backward) && task.stream != 0 &&
        std::ranges::any_of(rank.program.waits_for(i), communicates))
      return true;
  }
  return false;
}

/// A task of a unit that communicates.
struct Sent {
  std::uint32_t task = 0;
  Kind kind = Kind::reduction;
  std::optional<std::uint32_t> before;  ///< the collective that it stood behind
};

class Waits {
 public:
  Waits(const program::Job& job, const JobTimeline& timeline, std::size_t rank)
      : ranks_(job, timeline, rank),
        rank_(ranks_.own()),
        busy_(busy_spans(rank_)),
        in_one_queue_(is_in_one_queue(rank_)) {}

  std::vector<UnitCollective> run() {
    std::map<std::pair<std::size_t, Kind>, UnitCollective> all;
    for (const Sent& sent : sent_by_units()) {
      UnitCollective told = explained(sent);
      const auto key = std::pair(told.unit, sent.kind);
      const auto [found, is_first] = all.try_emplace(key, told);
      if (is_first) continue;
      ExposedBucket& now = told.why;
      const ExposedBucket& before = found->second.why;
      now.times.exposed += before.times.exposed;
      for (std::size_t c = 0; c < now.exposed_by.size(); ++c)
        now.exposed_by[c] += before.exposed_by[c];
      now.cause = largest(now);
      if (told.unit == rank_.job.groups.size()) told.payload += found->second.payload;
      now.collectives = told.count += found->second.count;
      found->second = std::move(told);
    }
    std::vector<UnitCollective> list;
    for (auto& each : all) list.push_back(std::move(each.second));
    return list;
  }

 private:
  const program::Task& task(std::uint32_t index) const { return rank_.program.tasks[index]; }
  const TaskTimes& times(std::uint32_t index) const { return rank_.times[index]; }

  bool is_of_no_group(const program::Task& task) const {
    const program::Origin& origin = rank_.origin_of(task);
    return origin.group == nobody && origin.purpose == Purpose::parameters;
  }

  std::vector<Sent> sent_by_units() const {
    const PassEnds ends = ends_of_passes(rank_);
    std::vector<Sent> sent;
    std::vector<std::uint32_t> earlier;
    std::vector<std::int32_t> reduced(rank_.job.groups.size(), nobody);  // [unit] its micro-batch
    for (std::uint32_t i = 0; i < rank_.program.tasks.size(); ++i) {
      if (!rank_.communicates(task(i))) continue;
      const program::Origin& origin = rank_.origin_of(task(i));
      if (is_of_no_group(task(i)) ||
          (origin.group != nobody && origin.purpose != Purpose::network)) {
        const Operation operation = rank_.job.works[task(i).work].operation;
        Kind kind = Kind::reduction;
        const auto forward = ends.forward.find(task(i).micro_batch);
        if (is_gather(operation))
          kind = i > ends.optimizer                                     ? Kind::updated_gather
                 : forward != ends.forward.end() && i < forward->second ? Kind::forward_gather
                                                                        : Kind::backward_gather;
        else if (std::exchange(reduced[at(origin.group)], task(i).micro_batch) ==
                 task(i).micro_batch)
          kind = Kind::replica_sum;
        sent.push_back({i, kind, before(i, earlier)});
      }
      earlier.push_back(i);
    }
    return sent;
  }

  /// The last to end before this one begins of those that stand before it on its stream or in its
  /// communicator.
  std::optional<std::uint32_t> before(std::uint32_t index,
                                      const std::vector<std::uint32_t>& earlier) const {
    constexpr std::size_t most = 64;
    const std::int16_t communicator = program::communicator_of(rank_.action_of(task(index)));
    std::optional<std::uint32_t> found;
    for (const std::uint32_t each : std::span(earlier).last(std::min(earlier.size(), most))) {
      if (task(each).stream != task(index).stream &&
          program::communicator_of(rank_.action_of(task(each))) != communicator)
        continue;
      if (times(each).end > times(index).start) continue;
      if (!found || times(each).end >= times(*found).end) found = each;
    }
    return found;
  }

  static Cause largest(const ExposedBucket& told) {
    const auto& by = told.exposed_by;
    return static_cast<Cause>(std::max_element(by.begin(), by.end()) - by.begin());
  }

  UnitCollective explained(const Sent& sent) const {
    const TaskTimes& its = times(sent.task);
    const Work& work = rank_.job.works[task(sent.task).work];
    UnitCollective told;
    const std::int32_t group = rank_.origin_of(task(sent.task)).group;
    told.unit = group == nobody ? rank_.job.groups.size() : at(group);
    told.kind = sent.kind;
    told.operation = work.operation;
    told.task = sent.task;
    told.count = 1;
    told.payload = work.payload;
    ExposedBucket& why = told.why;
    const TaskDetail detail = rank_.detail_of(task(sent.task));
    why.bucket = told.unit;
    why.times = {{}, its.start, its.end, idle_within(busy_, its.start, its.end), {}, detail.choice};
    why.issued = its.issued;
    why.launched = its.enqueued + detail.take_up;
    why.called = std::max(inputs_of(rank_, sent.task), ranks_.inputs_of_root(sent.task));
    std::vector<HeldUntil> holds{{why.launched, Cause::launch}};
    if (sent.before) {
      why.previous = times(*sent.before).end;
      // One of several that bring parameters of no group is a part of what is told.
      if (!is_of_no_group(task(sent.task)) || !is_of_no_group(task(*sent.before)))
        holds.push_back({why.previous, Cause::previous});
    }
    const bool gathers = is_gather(told.operation);
    find_input(sent, gathers, why, holds);
    const Instant arrival = std::max({why.times.ready, why.called, why.previous, why.launched});
    why.last_rank = ranks_.last_to_arrive(sent.task, arrival);
    explain(why, holds, arrival, busy_,
            {gathers ? Cause::itself : Cause::gradients, kernels_waiting(rank_, sent.task, busy_)});
    why.cause = largest(why);
    told.held = its.start > arrival                 ? Cause::slowest_rank
                : holds.back().at > why.times.ready ? holds.back().cause
                : gathers                           ? Cause::itself
                                                    : Cause::gradients;
    return told;
  }

  /// When its input could have been there at the earliest, and what held that up: back along what
  /// each task waited for, as far as it runs beside the kernels.
  void find_input(const Sent& sent, bool gathers, ExposedBucket& why,
                  std::vector<HeldUntil>& holds) const {
    Duration behind{};  // from the end of `at` to where the collective may begin
    std::uint32_t at = sent.task;
    while (true) {
      if (const Instant queued = queued_until(at, sent.task); queued > Instant{})
        holds.push_back({queued + behind, Cause::one_queue});
      const std::optional<std::uint32_t> input = last_input(at, sent.task);
      if (!input) return;
      const program::Task& its = task(*input);
      if (rank_.communicates(its)) {  // its own reduction before it, mostly
        why.times.ready = times(*input).end + behind;
        return;
      }
      const bool copies_out = std::holds_alternative<program::Unchunk>(rank_.action_of(its));
      if (gathers && copies_out) {
        holds.push_back({times(*input).end + behind, Cause::copy_out});
        return;
      }
      if (rank_.computes(its)) return find_gradients(*input, sent, gathers, behind, why, holds);
      behind += times(*input).end - times(*input).start;
      if (its.stream != 0) holds.push_back({times(*input).enqueued + behind, Cause::launch});
      at = *input;
    }
  }

  /// A kernel among those of the passes makes the input.
  void find_gradients(std::uint32_t input, const Sent& sent, bool gathers, Duration behind,
                      ExposedBucket& why, std::vector<HeldUntil>& holds) const {
    if (gathers) {
      why.times.ready = times(input).end + behind;
      return;
    }
    const Duration packing = times(input).end - times(input).start;
    Instant computed{}, free{};
    for (std::uint32_t i = input; i-- > 0;) {
      if (task(i).stream != task(input).stream) continue;
      if (!std::holds_alternative<program::Wait>(rank_.action_of(task(i)))) {
        computed = times(i).end;
        break;
      }
      for (const std::uint32_t each : rank_.program.waits_for(i))
        if (rank_.communicates(task(each)) || rank_.job.streams[task(each).stream].beside)
          free = std::max(free, times(each).end);
    }
    why.times.ready = computed + packing + behind;
    if (free > computed) holds.push_back({free + packing + behind, Cause::input_buffer});
    const Instant queued = queued_until(input, sent.task);
    if (queued > std::max(computed, free))
      holds.push_back({queued + packing + behind, Cause::one_queue});
    if (task(input).stream != 0 && times(input).enqueued > std::max(computed, free))
      holds.push_back({times(input).enqueued + packing + behind, Cause::launch});
  }

  /// In one queue: does a task wait for another only because that stands before it there? So it is
  /// of collectives, but for one whose result the next one sends.
  bool is_queued_behind(std::uint32_t earlier, std::uint32_t collective) const {
    const auto group = [this](std::uint32_t each) { return rank_.origin_of(task(each)).group; };
    return in_one_queue_ && rank_.communicates(task(earlier)) &&
           group(earlier) != group(collective);
  }

  Instant queued_until(std::uint32_t index, std::uint32_t collective) const {
    Instant until{};
    for (const std::uint32_t each : rank_.program.waits_for(index))
      if (is_queued_behind(each, collective)) until = std::max(until, times(each).end);
    return until;
  }

  std::optional<std::uint32_t> last_input(std::uint32_t index, std::uint32_t collective) const {
    std::optional<std::uint32_t> last;
    for (const std::uint32_t each : rank_.program.waits_for(index))
      if (!is_queued_behind(each, collective) && (!last || times(each).end >= times(*last).end))
        last = each;
    return last;
  }

  AllRanks ranks_;
  const RankOfJob& rank_;
  BusySpans busy_;
  bool in_one_queue_ = false;
};

}  // namespace

std::string_view name_of(UnitCollectiveKind kind) {
  constexpr std::array<std::string_view, all_unit_collective_kinds.size()> names{
      "forward_gather", "backward_gather", "reduction", "replica_sum", "updated_gather"};
  return names[static_cast<std::size_t>(kind)];
}

bool has_units(const program::Job& job) {
  if (!job.hook.empty()) return false;
  if (std::ranges::any_of(job.groups, [](const auto& group) { return !group.name.empty(); }))
    return true;
  return std::ranges::any_of(job.own.deeds, [](const program::Deed& deed) {
    const auto* sent = std::get_if<program::Collective>(&deed.action);
    return sent != nullptr && deed.origin.group != nobody &&
           (sent->what == program::Collectives::reduce_scatter ||
            deed.origin.purpose == Purpose::parameters);
  });
}

std::vector<UnitCollective> unit_collectives(const program::Job& job, const JobTimeline& timeline,
                                             std::size_t rank) {
  return Waits(job, timeline, rank).run();
}

std::optional<UnitCollective> updated_sends(const program::Job& job, const JobTimeline& timeline,
                                            std::size_t rank) {
  for (UnitCollective& each : Waits(job, timeline, rank).run())
    if (each.unit == job.groups.size() && each.kind == Kind::updated_gather) return std::move(each);
  return std::nullopt;
}

Duration exposed_of(const std::vector<UnitCollective>& collectives) {
  Duration sum{};
  for (const UnitCollective& each : collectives) sum += each.why.times.exposed;
  return sum;
}

}  // namespace ddpsim
