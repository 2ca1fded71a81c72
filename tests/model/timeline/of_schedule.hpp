#pragma once

#include <algorithm>

#include "model/ddp/task_origin.hpp"
#include "model/timeline/breakdown.hpp"
#include "model/timeline/busy_overlap.hpp"
#include "model/timeline/ddp_statistics.hpp"
#include "model/timeline/why.hpp"
#include "tests/model/timeline/schedule_times.hpp"

/// Figures of schedules written task by task, and of what became of them.
namespace ddpsim::timelines {

/// What figures ask of a task's action.
inline program::Action action_of(const Schedule& schedule, const Task& task) {
  if (task.operation == Operation::wait) return program::Wait{};
  if (task.operation == Operation::hook) return program::Call{};
  if (is_transfer(task.operation)) return program::Move{};
  if (task.operation == Operation::copy_in)
    return program::Scale{.factor = 1 / static_cast<float>(task.divisor)};
  if (!is_collective(task.operation)) return program::Compute{};
  program::Collective sent;
  if (task.operation == Operation::broadcast) sent.what = program::Collectives::broadcast;
  sent.communicator = schedule.work_of(task).communicator;
  sent.root = static_cast<std::int16_t>(std::max(task.owner, 0));
  sent.unawaited = task.bucket != nobody && schedule.buckets[at(task.bucket)].delayed;
  return sent;
}

/// A schedule as a job of ranks that are all alike, and its timeline as the job's.
struct OfSchedule {
  program::Job job;
  JobTimeline times;

  OfSchedule(const Schedule& schedule, const Timeline& timeline) {
    add_streams(schedule, timeline.ranks.size());
    job.works = schedule.works;
    job.works.emplace_back();
    job.labels = {""};
    for (const Bucket& bucket : schedule.buckets)
      job.groups.push_back({bucket.parameters, bucket.size});
    for (const Task& task : schedule.tasks)
      job.own.deeds.push_back({action_of(schedule, task), program::origin_of(schedule, task)});
    job.own.deeds.push_back({program::Wait{}, {}});
    job.program_of.assign(timeline.ranks.size(), 0);
    add_program(schedule);
    times = timeline_of(schedule, job, timeline);
  }

 private:
  void add_streams(const Schedule& schedule, std::size_t ranks) {
    const auto lanes = static_cast<std::uint8_t>(schedule.collectives_at_once);
    job.streams = {{.name = "host"}, {.name = "compute"}};
    for (const Work& work : schedule.works)
      queues_ = std::max<std::uint8_t>(queues_, work.communicator + 1);
    for (std::uint8_t queue = 0; queue < queues_; ++queue) {
      job.streams.push_back({"communication", true, true, lanes});
      auto& world = job.communicators.emplace_back().groups.emplace_back();
      for (std::size_t rank = 0; rank < ranks; ++rank)
        world.push_back(static_cast<std::int32_t>(rank));
    }
    job.streams.push_back({.name = "aside", .beside = true, .halts = true});
    job.streams.push_back({.name = "to_host", .beside = true});
    job.streams.push_back({.name = "to_device", .beside = true});
  }

  void add_program(const Schedule& schedule) {
    program::Program& program = job.programs.emplace_back();
    std::vector<std::uint32_t> places;
    const auto add = [&](program::Task task) {
      task.after_end = static_cast<std::uint32_t>(program.after.size());
      program.tasks.push_back(task);
    };
    for (std::uint32_t t = 0; t < schedule.tasks.size(); ++t) {
      const Task& task = schedule.tasks[t];
      for (const std::uint32_t earlier : schedule.waits_for(task))
        program.after.push_back(places[earlier]);
      if (task.host_waits && task.stream != Stream::host)
        add({.work = static_cast<std::uint32_t>(schedule.works.size()),
             .deed = static_cast<std::uint32_t>(schedule.tasks.size()),
             .micro_batch = task.micro_batch});
      places.push_back(static_cast<std::uint32_t>(program.tasks.size()));
      int stream = static_cast<int>(task.stream);
      if (task.stream == Stream::communication) stream += schedule.work_of(task).communicator;
      if (task.stream > Stream::communication) stream += queues_ - 1;
      add({.work = task.work,
           .deed = t,
           .micro_batch = task.micro_batch,
           .stream = static_cast<std::uint8_t>(stream)});
      if (task.gradient != nobody)
        program.marks.push_back(
            {program::Mark::Kind::ready, places.back(), places[at(task.gradient)]});
    }
    for (const LoggedIteration& each : schedule.logged)
      program.marks.push_back(
          {program::Mark::Kind::logged, places[each.begin], places[each.end - 1]});
  }

  std::uint8_t queues_ = 1;
};

inline StepMetrics measure(const Schedule& schedule, const Timeline& timeline,
                           std::size_t rank = 0) {
  const OfSchedule of(schedule, timeline);
  return ddpsim::measure(of.job, of.times, rank);
}

inline std::vector<ExposedBucket> why_exposed(const Schedule& schedule, const Timeline& timeline,
                                              const StepMetrics& metrics, std::size_t rank = 0) {
  const OfSchedule of(schedule, timeline);
  return ddpsim::why_exposed(of.job, of.times, metrics, rank);
}

inline std::vector<WaitForRank> waits_for_ranks(const Schedule& schedule, const Timeline& timeline,
                                                const StepMetrics& metrics, std::size_t rank = 0) {
  const OfSchedule of(schedule, timeline);
  return ddpsim::waits_for_ranks(of.job, of.times, metrics, rank);
}

/// (Where the host waits before no task, tasks of the job are those of the schedule.)
inline std::vector<CriticalPiece> critical_path(const Schedule& schedule,
                                                const Timeline& timeline) {
  const OfSchedule of(schedule, timeline);
  return ddpsim::critical_path({of.job, of.times, 0});
}

inline Breakdown break_down(const Schedule& schedule, const Timeline& timeline) {
  const OfSchedule of(schedule, timeline);
  return ddpsim::break_down(of.job, of.times, 0);
}

inline BusyOverlap busy_overlap(const Schedule& schedule, const Timeline& timeline) {
  const OfSchedule of(schedule, timeline);
  return ddpsim::busy_overlap({of.job, of.times, 0});
}

inline std::optional<DdpStatistics> ddp_statistics(const Schedule& schedule,
                                                   const Timeline& timeline) {
  const OfSchedule of(schedule, timeline);
  return ddpsim::ddp_statistics({of.job, of.times, 0});
}

}  // namespace ddpsim::timelines
