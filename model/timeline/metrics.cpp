#include "model/timeline/metrics.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "model/base/index.hpp"
#include "model/timeline/busy_spans.hpp"
#include "model/timeline/port_bytes.hpp"
#include "model/timeline/step_parts.hpp"

namespace ddpsim {
namespace {

using program::Origin;
using program::Pass;
using program::Purpose;

bool waits(const program::Action& action) {
  return std::holds_alternative<program::Wait>(action);
}

class Measuring {
 public:
  explicit Measuring(const RankOfJob& rank) : rank_(rank), busy_(busy_spans(rank)) {
    const std::size_t groups = rank.job.groups.size();
    metrics_.buckets.resize(groups);
    copied_.resize(groups, -1);
    sent_.resize(groups, -1);
    ready_.resize(rank.program.tasks.size());
    for (const program::Mark& mark : rank.program.marks)
      if (mark.kind == program::Mark::Kind::ready) ready_[mark.task] = mark.of;
  }

  StepMetrics run(Instant end) {
    metrics_.step = end.time_since_epoch();
    const auto& tasks = rank_.program.tasks;
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      passes_.begin(tasks[i].micro_batch);
      add(i);
    }
    passes_.put_into(metrics_);
    metrics_.communication = communication_of(rank_);
    add_host_copies();
    metrics_.bound = bound_of();
    return std::move(metrics_);
  }

 private:
  void add(std::uint32_t index) {
    const program::Task& task = rank_.program.tasks[index];
    const Origin& origin = rank_.origin_of(task);
    const program::Action& action = rank_.action_of(task);
    const TaskTimes& times = rank_.times[index];
    const bool communicates = rank_.communicates(task);
    if (origin.purpose == Purpose::hook) {
      if (!waits(action)) metrics_.comm_hook += times.end - times.start;
      return;
    }
    switch (origin.pass) {
      case Pass::forward:
        return passes_.forward(times);
      case Pass::backward:
        return passes_.backward(times);
      case Pass::optimizer:
        return passes_.optimizer(times);
      case Pass::none:
        if (communicates && origin.purpose != Purpose::network) add_collective(index);
    }
  }

  void add_collective(std::uint32_t index) {
    const program::Task& task = rank_.program.tasks[index];
    const TaskTimes& times = rank_.times[index];
    const std::int32_t group = rank_.origin_of(task).group;
    metrics_.payload += rank_.job.works[task.work].payload;
    metrics_.wire += on_wire(task);
    ++metrics_.collectives;
    if (group == nobody) return;
    BucketTimes& bucket = metrics_.buckets[at(group)];
    const Duration waited = idle_within(busy_, times.start, times.end);
    if (sent_[at(group)] == task.micro_batch) {
      bucket.end = times.end;
      bucket.exposed += waited;
      return;
    }
    sent_[at(group)] = task.micro_batch;
    bucket = {times.issued, times.start, times.end, waited, {}, rank_.detail_of(task).choice};
    if (ready_[index]) bucket.ready = rank_.times[*ready_[index]].end;
  }

  /// The payload; of parts that a strategy gathers or scatters, what crosses the port.
  Bytes on_wire(const program::Task& task) const {
    const Work& work = rank_.job.works[task.work];
    const bool of_parts =
        rank_.job.hook.empty() &&
        (work.operation == Operation::all_gather || work.operation == Operation::reduce_scatter) &&
        (work.message == Message::gradients || work.message == Message::parameters);
    return of_parts ? port_bytes_of_parts(work, ranks_of(rank_.job, work)) : work.payload;
  }

  void add_host_copies() {
    const auto& tasks = rank_.program.tasks;
    std::vector<std::uint32_t> copies;
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      const std::int32_t group = rank_.origin_of(tasks[i]).group;
      if (group == nobody || !rank_.moves(tasks[i])) continue;
      copies.push_back(i);
      copied_[at(group)] = tasks[i].micro_batch;
    }
    if (copies.empty()) return;
    BusySpans occupied = busy_;
    for (std::uint32_t i = 0; i < tasks.size(); ++i)
      if (rank_.communicates(tasks[i]))
        occupied.emplace_back(rank_.times[i].start, rank_.times[i].end);
    occupied = united(std::move(occupied));
    for (const std::uint32_t i : copies) {
      const std::int32_t group = rank_.origin_of(tasks[i]).group;
      if (tasks[i].micro_batch != copied_[at(group)]) continue;
      const Duration waited = idle_within(occupied, rank_.times[i].start, rank_.times[i].end);
      metrics_.buckets[at(group)].exposed += waited;
      metrics_.buckets[at(group)].host_copies += waited;
    }
  }

  Bound bound_of() const {
    BoundShares shares;
    for (const CriticalPiece& piece : critical_path(rank_)) {
      const program::Task& task = rank_.program.tasks[piece.task];
      const Purpose purpose = rank_.origin_of(task).purpose;
      if (piece.on_host)
        shares.add(Bound::launch, piece.length);
      else if (rank_.moves(task))
        shares.add(Bound::bandwidth, piece.length);
      else if (!rank_.communicates(task))
        shares.add_kernel(piece.length, rank_.detail_of(task));
      else if (purpose == Purpose::gradients || purpose == Purpose::parameters)
        shares.add_collective(piece.length, rank_.detail_of(task));
      else
        shares.add(Bound::latency, piece.length);
    }
    return shares.largest();
  }

  const RankOfJob& rank_;
  BusySpans busy_;
  StepMetrics metrics_;
  PassTimes passes_;
  std::vector<int> sent_, copied_;                   ///< [group] the latest micro-batch that did
  std::vector<std::optional<std::uint32_t>> ready_;  ///< [task] what made its input ready
};

/// Walks back from the end: each time to whatever held up the beginning of this.
class CriticalPath {
 public:
  explicit CriticalPath(const RankOfJob& rank) : rank_(rank) {
    const auto& tasks = rank.program.tasks;
    std::vector<std::vector<std::uint32_t>> on_stream(rank.job.streams.size());
    before_.reserve(tasks.size());
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      before_.push_back(before(i, on_stream[tasks[i].stream]));
      on_stream[tasks[i].stream].push_back(i);
      if (rank.times[i].end >= rank.times[task_].end) task_ = i;
    }
  }

  std::vector<CriticalPiece> run() {
    if (rank_.program.tasks.empty()) return {};
    on_host_ = only_on_host(task_);
    while (on_host_ ? back_on_host() : back_on_device()) {
    }
    std::ranges::reverse(path_);
    return std::move(path_);
  }

 private:
  static constexpr std::uint32_t nothing = ~std::uint32_t{0};

  bool is_hosts(std::uint32_t task) const { return rank_.program.tasks[task].stream == 0; }
  bool only_on_host(std::uint32_t task) const {
    return is_hosts(task) && !rank_.computes(rank_.program.tasks[task]);
  }
  Instant host_end(std::uint32_t task) const {
    return is_hosts(task) ? rank_.times[task].end : rank_.times[task].enqueued;
  }

  /// The task before it on its stream; where several are under way, the last to have ended by then.
  std::uint32_t before(std::uint32_t task, const std::vector<std::uint32_t>& earlier) const {
    if (earlier.empty()) return nothing;
    if (rank_.job.streams[rank_.program.tasks[task].stream].lanes == 1) return earlier.back();
    constexpr std::size_t most_overlapping = 64;
    std::uint32_t found = nothing;
    const auto& times = rank_.times;
    for (const std::uint32_t each :
         std::span(earlier).last(std::min(earlier.size(), most_overlapping)))
      if (times[each].end <= times[task].start &&
          (found == nothing || times[each].end >= times[found].end))
        found = each;
    return found;
  }

  void add(bool on_host, Duration length) { path_.push_back({task_, on_host, length}); }

  /// To what the host waited for last: a task of another stream, or its own previous one. False:
  /// there is none.
  bool back_on_host() {
    const TaskTimes& at = rank_.times[task_];
    add(true, (first_launch_ ? std::min(at.start, at.enqueued) : at.enqueued) - at.issued);
    first_launch_ = false;
    std::uint32_t cause = nothing;
    Instant free = task_ == 0 ? Instant::min() : host_end(task_ - 1);
    if (is_hosts(task_))
      for (const std::uint32_t earlier : rank_.program.waits_for(task_))
        if (rank_.times[earlier].end >= free) {
          cause = earlier;
          free = rank_.times[earlier].end;
        }
    if (cause != nothing) {
      task_ = cause;
      on_host_ = only_on_host(task_);
      return true;
    }
    if (task_ == 0) return false;
    --task_;
    on_host_ = !is_hosts(task_) || only_on_host(task_);
    return true;
  }

  /// To the latest of three events: what it waits for had ended, the task before it on its stream
  /// had ended, the host had launched it. (A measured task begins a little later than any of them.)
  bool back_on_device() {
    const program::Task& task = rank_.program.tasks[task_];
    const TaskTimes& at = rank_.times[task_];
    const Duration last_launch = rank_.detail_of(task).last_launch;
    const bool starved = !is_hosts(task_) && !rank_.job.streams[task.stream].beside &&
                         rank_.job.works[task.work].launches > 1 &&
                         at.end == at.enqueued + last_launch;
    if (starved) {  // it ended late because the host launched it late
      add(false, last_launch);
      on_host_ = true;
      return true;
    }
    add(false, at.end - at.start);
    std::uint32_t cause = nothing;
    Instant began = std::min(at.start, at.enqueued);
    const auto held_by = [&](std::uint32_t earlier) {
      if (rank_.times[earlier].end < began) return;
      cause = earlier;
      began = rank_.times[earlier].end;
    };
    if (before_[task_] != nothing) held_by(before_[task_]);
    for (const std::uint32_t earlier : rank_.program.waits_for(task_)) held_by(earlier);
    if (cause == nothing) {
      on_host_ = first_launch_ = true;  // it began as soon as the host had launched it
      return true;
    }
    task_ = cause;
    on_host_ = only_on_host(task_);
    return true;
  }

  const RankOfJob& rank_;
  std::vector<std::uint32_t> before_;  ///< [task]
  std::vector<CriticalPiece> path_;
  std::uint32_t task_ = 0;
  bool on_host_ = false;
  bool first_launch_ = false;  ///< the host's piece ends with the first launch, not with the last
};

}  // namespace

std::string_view name_of(Bound bound) {
  constexpr std::array<std::string_view, 6> names{"compute", "bandwidth",    "latency",
                                                  "launch",  "interference", "input"};
  return names[static_cast<std::size_t>(bound)];
}

Duration communication_of(const RankOfJob& rank) {
  BusySpans under_way;
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if ((rank.communicates(task) || rank.moves(task)) &&
        rank.origin_of(task).purpose != Purpose::network)
      under_way.emplace_back(rank.times[i].start, rank.times[i].end);
  }
  return total_length(united(std::move(under_way)));
}

StepMetrics measure(const program::Job& job, const JobTimeline& timeline, std::size_t rank) {
  const RankOfJob its(job, timeline, rank);
  return Measuring(its).run(timeline.end);
}

double overlap_ratio(const StepMetrics& step, const StepMetrics& none) {
  if (step.communication == Duration::zero()) return 1;
  return std::clamp(1 - in_seconds(exposed(step, none)) / in_seconds(step.communication), 0.0, 1.0);
}

std::vector<CriticalPiece> critical_path(const RankOfJob& rank) {
  return CriticalPath(rank).run();
}

}  // namespace ddpsim
