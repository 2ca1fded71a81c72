#include "model/timeline/metrics.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "model/timeline/busy_spans.hpp"
#include "model/timeline/step_parts.hpp"

namespace ddpsim {
namespace {

Bound bound_of(const Schedule& schedule, const Timeline& timeline, int rank) {
  BoundShares shares;
  for (const CriticalPiece& piece : critical_path(schedule, timeline, rank)) {
    const Task& task = schedule.tasks[piece.task];
    const bool tells =
        task.bucket == nobody && schedule.work_of(task).message != Message::parameters;
    if (piece.on_host)
      shares.add(Bound::launch, piece.length);
    else if (is_transfer(task.operation))
      shares.add(Bound::bandwidth, piece.length);
    else if (!is_collective(task.operation))
      shares.add_kernel(piece.length, timeline.detail_of(task));
    else if (tells)
      shares.add(Bound::latency, piece.length);
    else
      shares.add_collective(piece.length, timeline.detail_of(task));
  }
  return shares.largest();
}

/// What the network itself sends is part of its passes, under every strategy, `none` too: it is not
/// the step's communication.
bool counts_as_communication(const Schedule& schedule, const Task& task) {
  return (is_collective(task.operation) || is_transfer(task.operation)) &&
         schedule.work_of(task).message != Message::own;
}

/// When kernels ran or a collective was under way.
BusySpans busy_or_communicating(const Schedule& schedule, const std::vector<TaskTimes>& times) {
  BusySpans all = busy_spans(schedule, times);
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i)
    if (is_collective(schedule.tasks[i].operation)) all.emplace_back(times[i].start, times[i].end);
  return united(std::move(all));
}

/// Adds to each bucket what its last micro-batch's copies to the host and back are exposed.
void add_host_copies(const Schedule& schedule, const std::vector<TaskTimes>& times,
                     std::vector<BucketTimes>& buckets) {
  const auto copies_bucket = [](const Task& task) {
    return task.bucket != nobody && is_transfer(task.operation);
  };
  if (std::none_of(schedule.tasks.begin(), schedule.tasks.end(), copies_bucket)) return;
  std::vector<int> last_micro_batch(buckets.size());
  for (const Task& task : schedule.tasks)
    if (copies_bucket(task))
      last_micro_batch[static_cast<std::size_t>(task.bucket)] = task.micro_batch;
  const BusySpans occupied = busy_or_communicating(schedule, times);
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    if (!copies_bucket(task) ||
        task.micro_batch != last_micro_batch[static_cast<std::size_t>(task.bucket)])
      continue;
    BucketTimes& bucket = buckets[static_cast<std::size_t>(task.bucket)];
    const Duration waited = idle_within(occupied, times[i].start, times[i].end);
    bucket.exposed += waited;
    bucket.host_copies += waited;
  }
}

/// What a collective adds to the figures: its bytes, and the times of its bucket.
void add_collective(const Schedule& schedule, const std::vector<TaskTimes>& times,
                    const BusySpans& busy, std::size_t index, const CollectiveChoice& choice,
                    StepMetrics& metrics) {
  const Task& task = schedule.tasks[index];
  const TaskTimes& at = times[index];
  metrics.wire += schedule.work_of(task).payload;
  ++metrics.collectives;
  if (task.bucket == nobody) return;
  BucketTimes& bucket = metrics.buckets[static_cast<std::size_t>(task.bucket)];
  const Duration waited = idle_within(busy, at.start, at.end);
  if (!begins_bucket(schedule, task)) {
    bucket.end = at.end;
    bucket.exposed += waited;
    return;
  }
  bucket = {at.issued, at.start, at.end, waited, {}, choice};
  if (task.gradient != nobody) bucket.ready = times[static_cast<std::size_t>(task.gradient)].end;
}

}  // namespace

std::string_view name_of(Bound bound) {
  constexpr std::array<std::string_view, 6> names{"compute", "bandwidth",    "latency",
                                                  "launch",  "interference", "input"};
  return names[static_cast<std::size_t>(bound)];
}

bool begins_bucket(const Schedule& schedule, const Task& task) {
  if (task.step == nobody)
    return schedule.work_of(task).message == Message::gradients ||
           schedule.work_of(task).message == Message::sparse_shape;
  const auto& steps = schedule.buckets[static_cast<std::size_t>(task.bucket)].steps;
  return std::none_of(steps.begin(), steps.begin() + task.step,
                      [](const CommStep& step) { return is_collective(step.operation); });
}

Duration communication_of(const Schedule& schedule, const Timeline& timeline, int rank) {
  const auto& times = timeline.ranks.at(static_cast<std::size_t>(rank));
  BusySpans under_way;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i)
    if (counts_as_communication(schedule, schedule.tasks[i]))
      under_way.emplace_back(times[i].start, times[i].end);
  return total_length(united(std::move(under_way)));
}

StepMetrics measure(const Schedule& schedule, const Timeline& timeline, int rank) {
  const auto& times = timeline.ranks.at(static_cast<std::size_t>(rank));
  StepMetrics metrics;
  metrics.step = timeline.end.time_since_epoch();
  metrics.buckets.resize(schedule.buckets.size());
  const auto busy = busy_spans(schedule, times);
  PassTimes passes;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    const TaskTimes& at = times[i];
    passes.begin(task.micro_batch);
    if (task.step != nobody && !is_collective(task.operation) &&
        task.operation != Operation::wait) {
      metrics.comm_hook += at.end - at.start;
      continue;
    }
    switch (traits_of(task.operation).pass) {
      case OperationTraits::Pass::forward:
        passes.forward(at);
        break;
      case OperationTraits::Pass::backward:
        passes.backward(at);
        break;
      case OperationTraits::Pass::optimizer:
        passes.optimizer(at);
        break;
      case OperationTraits::Pass::none:
        if (is_collective(task.operation) && counts_as_communication(schedule, task))
          add_collective(schedule, times, busy, i, timeline.detail_of(task).choice, metrics);
        break;
    }
  }
  passes.put_into(metrics);
  add_host_copies(schedule, times, metrics.buckets);
  metrics.communication = communication_of(schedule, timeline, rank);
  metrics.bound = bound_of(schedule, timeline, rank);
  return metrics;
}

double overlap_ratio(const StepMetrics& step, const StepMetrics& none) {
  if (step.communication == Duration::zero()) return 1;
  return std::clamp(1 - in_seconds(exposed(step, none)) / in_seconds(step.communication), 0.0, 1.0);
}

std::vector<CriticalPiece> critical_path(const Schedule& schedule, const Timeline& timeline,
                                         int rank) {
  const auto& times = timeline.ranks.at(static_cast<std::size_t>(rank));
  const auto count = static_cast<std::uint32_t>(schedule.tasks.size());
  if (count == 0) return {};
  const auto only_on_host = [&](std::uint32_t i) {
    return schedule.tasks[i].stream == Stream::host &&
           !schedule.work_of(schedule.tasks[i]).computes();
  };
  // The task before each one on its own stream; where collectives overlap, that of its communicator
  // which was the last to end before it began.
  constexpr std::uint32_t nothing = ~std::uint32_t{0};
  std::vector<std::uint32_t> before(count, nothing);
  std::array<std::uint32_t, all_streams.size()> latest;
  latest.fill(nothing);
  constexpr std::size_t most_overlapping = 64;
  std::vector<std::uint32_t> collectives;
  const auto queue_of = [&](const Task& task) { return schedule.work_of(task).communicator; };
  const bool several = schedule.collectives_at_once > 1 ||
                       std::any_of(schedule.works.begin(), schedule.works.end(),
                                   [](const Work& work) { return work.communicator != 0; });
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t& on_stream = latest[static_cast<std::size_t>(schedule.tasks[i].stream)];
    before[i] = on_stream;
    if (several && schedule.tasks[i].stream == Stream::communication) {
      before[i] = nothing;
      const std::size_t first = collectives.size() - std::min(collectives.size(), most_overlapping);
      for (const std::uint32_t earlier : std::span(collectives).subspan(first))
        if (queue_of(schedule.tasks[earlier]) == queue_of(schedule.tasks[i]) &&
            times[earlier].end <= times[i].start &&
            (before[i] == nothing || times[earlier].end >= times[before[i]].end))
          before[i] = earlier;
      collectives.push_back(i);
    }
    on_stream = i;
    if (times[i].end >= times[last].end) last = i;
  }

  const auto host_end = [&](std::uint32_t i) {
    return schedule.tasks[i].stream == Stream::host ? times[i].end : times[i].enqueued;
  };

  // Walk back from the end: each time to whatever held up the beginning of this.
  std::vector<CriticalPiece> path;
  std::uint32_t task = last;
  bool on_host = only_on_host(task);
  bool first_launch =
      false;  // the host's piece ends with the first launch of this task, not with the last
  while (true) {
    const TaskTimes& at = times[task];
    const Task& what = schedule.tasks[task];
    if (on_host) {
      path.push_back(
          {task, true, (first_launch ? std::min(at.start, at.enqueued) : at.enqueued) - at.issued});
      first_launch = false;
      // What the host waited for last: a task of another stream, or its own previous task.
      std::uint32_t cause = nothing;
      Instant free = task == 0 ? Instant::min() : host_end(task - 1);
      if (what.host_waits || what.stream == Stream::host)
        for (const std::uint32_t earlier : schedule.waits_for(what))
          if (times[earlier].end >= free) {
            cause = earlier;
            free = times[earlier].end;
          }
      if (cause != nothing) {
        task = cause;
        on_host = only_on_host(task);
      } else if (task == 0) {
        break;
      } else {
        --task;
        on_host = schedule.tasks[task].stream != Stream::host || only_on_host(task);
      }
      continue;
    }
    const Duration last_launch = timeline.detail_of(what).last_launch;
    const bool starved = what.stream == Stream::compute && schedule.work_of(what).launches > 1 &&
                         at.end == at.enqueued + last_launch;
    if (starved) {  // it ended late because the host launched it late
      path.push_back({task, false, last_launch});
      on_host = true;
      continue;
    }
    path.push_back({task, false, at.end - at.start});
    // The task began with the latest of three events: what it waits for had ended, the task before
    // it on its stream had ended, the host had launched it. (A measured task begins a little later
    // than any of them.)
    std::uint32_t cause = nothing;
    Instant began = std::min(at.start, at.enqueued);
    if (before[task] != nothing && times[before[task]].end >= began) {
      cause = before[task];
      began = times[cause].end;
    }
    for (const std::uint32_t earlier : schedule.waits_for(what))
      if (times[earlier].end >= began) {
        cause = earlier;
        began = times[earlier].end;
      }
    if (cause != nothing) {
      task = cause;
      on_host = only_on_host(task);
    } else {
      on_host = first_launch = true;  // it began as soon as the host had launched it
    }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace ddpsim
