#include "model/timeline/ddp_statistics.hpp"

#include <algorithm>
#include <chrono>

namespace ddpsim {
namespace {

/// Before which task each mark is.
struct Marks {
  std::uint32_t forward_start = 0, compute_start = 0, comm_start = 0, compute_end = 0, comm_end = 0;
};

constexpr std::uint32_t nowhere = ~std::uint32_t{0};

/// What DDP's logger tells tasks apart by.
class Logged {
 public:
  explicit Logged(const RankOfJob& rank) : rank_(rank) {}

  Operation operation(std::uint32_t index) const { return work(index).operation; }

  /// Does it put a gradient of the first bucket in place, or tell DDP that it is there?
  bool fills_first(std::uint32_t index) const {
    return origin(index).group == 0 &&
           (operation(index) == Operation::hook || operation(index) == Operation::copy_in ||
            operation(index) == Operation::divide || operation(index) == Operation::concatenate);
  }
  /// Does a bucket go with it, or its comm hook begin?
  bool launches(std::uint32_t index) const {
    if (is_hooks(index)) return true;
    const auto* sent = std::get_if<program::Collective>(&rank_.action_of(task(index)));
    return sent != nullptr && origin(index).group != nobody && !sent->unawaited;
  }
  bool sends_used_map(std::uint32_t index) const {
    return rank_.communicates(task(index)) && work(index).message == Message::used_map;
  }
  /// (A comm hook's own waits, ZeRO's, are part of backward.)
  bool waits_for_bucket(std::uint32_t index) const {
    return is_wait(index) && origin(index).group != nobody && !is_hooks(index);
  }
  /// Does it finish what a bucket, or the used map, sent: a wait for it, a copy back?
  bool finishes_bucket(std::uint32_t index) const {
    if (operation(index) == Operation::copy_out) return origin(index).group != nobody;
    return is_wait(index) &&
           (origin(index).group != nobody || work(index).message == Message::used_map);
  }
  bool in_line(std::uint32_t index) const { return !rank_.job.streams[task(index).stream].beside; }
  bool is_part_of_another(std::uint32_t index) const {
    return rank_.is_part_of_another(task(index));
  }

 private:
  const program::Task& task(std::uint32_t index) const { return rank_.program.tasks[index]; }
  const Work& work(std::uint32_t index) const { return rank_.job.works[task(index).work]; }
  const program::Origin& origin(std::uint32_t index) const { return rank_.origin_of(task(index)); }
  bool is_wait(std::uint32_t index) const {
    return std::holds_alternative<program::Wait>(rank_.action_of(task(index)));
  }
  bool is_hooks(std::uint32_t index) const {
    return origin(index).purpose == program::Purpose::hook;
  }

  const RankOfJob& rank_;
};

Marks marks_of(const RankOfJob& rank) {
  const Logged logged(rank);
  const auto count = static_cast<std::uint32_t>(rank.times.size());
  const std::int16_t last = rank.program.tasks.back().micro_batch;
  Marks marks{nowhere, nowhere, nowhere, nowhere, 0};
  std::uint32_t filled = nowhere;  // after the last that fills the first bucket
  bool searched = false;           // for unused parameters, which a static graph never does
  std::uint32_t begin = 0;         // of the task, with the host's wait before it
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i == 0 || !logged.is_part_of_another(i - 1)) begin = i;
    if (rank.program.tasks[i].micro_batch != last || logged.is_part_of_another(i)) continue;
    const Operation operation = logged.operation(i);
    marks.forward_start = std::min(marks.forward_start, begin);
    if (operation == Operation::forward) marks.compute_start = i + 1;
    if (operation == Operation::backward)
      marks.compute_start = std::min(marks.compute_start, begin);
    searched = searched || operation == Operation::search_unused;
    if (logged.fills_first(i) && marks.compute_end == nowhere) filled = i + 1;
    if (logged.launches(i)) marks.comm_start = std::min(marks.comm_start, begin);
    // A static graph's first iteration communicates nothing before its used map: both marks are
    // there.
    const bool late = logged.sends_used_map(i) && marks.comm_start == nowhere && !searched;
    if (late) marks.comm_start = begin;
    if (late || logged.waits_for_bucket(i)) marks.compute_end = std::min(marks.compute_end, begin);
    if (logged.finishes_bucket(i)) marks.comm_end = i + 1;
  }
  // A comm hook that does nothing: the mark stands where it was called.
  if (marks.comm_start == nowhere) marks.comm_start = filled;
  marks.compute_start = std::min(marks.compute_start, count);
  marks.compute_end = std::min(marks.compute_end, count);
  return marks;
}

}  // namespace

std::optional<DdpStatistics> ddp_statistics(const RankOfJob& rank) {
  const bool is_logged = std::ranges::any_of(rank.program.marks, [](const program::Mark& mark) {
    return mark.kind == program::Mark::Kind::logged;
  });
  if (!is_logged) return std::nullopt;
  const Marks marks = marks_of(rank);
  const Logged logged(rank);
  // What the stream reaches once all before a task is done: a mark is an event enqueued there.
  std::vector<Instant> before{Instant{}};
  for (std::uint32_t i = 0; i < rank.times.size(); ++i)
    before.push_back(
        std::max(before.back(), logged.in_line(i) ? rank.times[i].end : rank.times[i].enqueued));
  DdpStatistics statistics;
  statistics.forward_compute = before[marks.compute_start] - before[marks.forward_start];
  statistics.backward_compute = before[marks.compute_end] - before[marks.compute_start];
  if (marks.comm_start == nowhere) return statistics;
  statistics.backward_comm = before[marks.comm_end] - before[marks.comm_start];
  const Duration overlap = before[marks.compute_end] - before[marks.comm_start];
  if (marks.comm_start < marks.compute_end && overlap >= Duration::zero())
    statistics.overlap = overlap;
  return statistics;
}

void DdpAverages::add(const DdpStatistics& sample) {
  ++samples_;
  average(forward_compute_, sample.forward_compute);
  average(backward_compute_, sample.backward_compute);
  average(backward_comm_, sample.backward_comm);
  average(overlap_, sample.overlap);
}

void DdpAverages::average(std::int64_t& average, std::optional<Duration> value) const {
  if (!value) return;
  const std::int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(*value).count();
  average = (ns + average * (samples_ - 1)) / samples_;
}

}  // namespace ddpsim
