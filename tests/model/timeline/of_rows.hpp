#pragma once

#include <algorithm>

#include "model/timeline/breakdown.hpp"
#include "model/timeline/busy_overlap.hpp"
#include "model/timeline/ddp_statistics.hpp"
#include "model/timeline/why.hpp"
#include "tests/model/timeline/timelines.hpp"

/// Figures of steps written task by task, and of what became of them.
namespace ddpsim::timelines {

/// What figures ask of a task's action.
inline program::Action action_of(const FlatTask& task) {
  if (task.operation == Operation::wait) return program::Wait{};
  if (task.operation == Operation::hook) return program::Call{};
  if (is_transfer(task.operation)) return program::Move{};
  if (task.operation == Operation::copy_in)
    return program::Scale{.factor = 1 / static_cast<float>(task.divisor)};
  if (!is_collective(task.operation)) return program::Compute{};
  program::Collective sent;
  if (task.operation == Operation::broadcast) sent.what = program::Collectives::broadcast;
  sent.root = static_cast<std::int16_t>(task.root);
  sent.unawaited = task.unawaited;
  return sent;
}

/// What a collective that is no bucket's sends, or a wait for one.
inline program::Purpose purpose_of(Message message) {
  if (message == Message::buffers) return program::Purpose::buffers;
  if (message == Message::parameters) return program::Purpose::parameters;
  if (message == Message::own) return program::Purpose::network;
  return message == Message::gradients ? program::Purpose::gradients : program::Purpose::note;
}

/// Rows as a job of ranks that are all alike, and their times as the job's.
struct OfRows {
  program::Job job;
  JobTimeline times;

  OfRows(const FlatStep& step, const Times& when) {
    add_streams(step, when.ranks.size());
    job.works = step.works;
    job.labels = {""};
    job.groups.assign(step.buckets.begin(), step.buckets.end());
    job.program_of.assign(when.ranks.size(), 0);
    add_program(step);
    times.end = when.end;
    times.measured = when.of_each_rank;
    if (!when.details.empty()) times.details = {when.details};
    for (const std::vector<TaskTimes>& rank : when.ranks) {
      times.class_of.push_back(static_cast<std::uint32_t>(times.classes.size()));
      times.classes.push_back(rank);
      if (!when.details.empty()) times.details_of.push_back(0);
    }
  }

 private:
  void add_streams(const FlatStep& step, std::size_t ranks) {
    const auto lanes = static_cast<std::uint8_t>(step.collectives_at_once);
    job.streams = {{.name = "host"}, {.name = "compute"}};
    for (const Work& work : step.works)
      queues_ = std::max<std::uint8_t>(queues_, work.communicator + 1);
    for (std::uint8_t queue = 0; queue < queues_; ++queue) {
      job.streams.push_back({"communication", true, true, lanes});
      auto& world = job.communicators.emplace_back().groups.emplace_back();
      for (std::size_t rank = 0; rank < ranks; ++rank)
        world.push_back(static_cast<std::int32_t>(rank));
    }
    job.streams.push_back({.name = "aside", .beside = true, .halts = true});
    job.streams.push_back({.name = "to host", .beside = true});
    job.streams.push_back({.name = "to device", .beside = true});
  }

  program::Origin origin_of(const FlatTask& task, const Work& work) {
    program::Origin origin;
    origin.pass = traits_of(task.operation).pass;
    origin.purpose = purpose_of(work.message);
    origin.layer = task.layer;
    origin.kernel = task.kernel;
    origin.parameter = task.parameter;
    origin.group = task.bucket;
    origin.hook = task.user_hook;
    if (task.hook_step.empty()) return origin;
    origin.label = static_cast<std::int16_t>(job.labels.size());
    job.labels.push_back(task.hook_step);
    if (!is_collective(task.operation)) origin.purpose = program::Purpose::hook;
    return origin;
  }

  void add_program(const FlatStep& step) {
    program::Program& program = job.programs.emplace_back();
    program.after = step.after;
    program.marks = step.logged;
    for (std::uint32_t t = 0; t < step.tasks.size(); ++t) {
      const FlatTask& task = step.tasks[t];
      const Work& work = step.work_of(task);
      job.own.deeds.push_back({action_of(task), origin_of(task, work)});
      if (auto* sent = std::get_if<program::Collective>(&job.own.deeds.back().action))
        sent->communicator = work.communicator;
      int stream = static_cast<int>(task.stream);
      if (task.stream == StepStream::communication) stream += work.communicator;
      if (task.stream > StepStream::communication) stream += queues_ - 1;
      program.tasks.push_back({.work = task.work,
                               .deed = t,
                               .after_end = task.after_begin + task.after_count,
                               .micro_batch = task.micro_batch,
                               .stream = static_cast<std::uint8_t>(stream)});
      if (task.gradient != nobody)
        program.marks.push_back(
            {program::Mark::Kind::ready, t, static_cast<std::uint32_t>(task.gradient)});
    }
  }

  std::uint8_t queues_ = 1;
};

inline StepMetrics measure(const FlatStep& step, const Times& when, std::size_t rank = 0) {
  const OfRows of(step, when);
  return ddpsim::measure(of.job, of.times, rank);
}

inline std::vector<ExposedBucket> why_exposed(const FlatStep& step, const Times& when,
                                              const StepMetrics& metrics, std::size_t rank = 0) {
  const OfRows of(step, when);
  return ddpsim::why_exposed(of.job, of.times, metrics, rank);
}

inline std::vector<WaitForRank> waits_for_ranks(const FlatStep& step, const Times& when,
                                                const StepMetrics& metrics, std::size_t rank = 0) {
  const OfRows of(step, when);
  return ddpsim::waits_for_ranks(of.job, of.times, metrics, rank);
}

inline std::vector<CriticalPiece> critical_path(const FlatStep& step, const Times& when) {
  const OfRows of(step, when);
  return ddpsim::critical_path({of.job, of.times, 0});
}

inline Breakdown break_down(const FlatStep& step, const Times& when) {
  const OfRows of(step, when);
  return ddpsim::break_down(of.job, of.times, 0);
}

inline BusyOverlap busy_overlap(const FlatStep& step, const Times& when) {
  const OfRows of(step, when);
  return ddpsim::busy_overlap({of.job, of.times, 0});
}

inline std::optional<DdpStatistics> ddp_statistics(const FlatStep& step, const Times& when) {
  const OfRows of(step, when);
  return ddpsim::ddp_statistics({of.job, of.times, 0});
}

}  // namespace ddpsim::timelines
