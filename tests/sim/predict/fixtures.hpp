#pragma once

#include <algorithm>
#include <ostream>
#include <span>
#include <vector>

#include "sim/engine/simulate.hpp"
#include "tests/model/flat_step.hpp"

/// Steps written task by task, and what became of them.
namespace ddpsim::fixtures {

/// A task and its prices in one piece. Script::add parts it into a task, a piece of work and a
/// cost.
struct PricedTask {
  Operation operation = Operation::forward;
  StepStream stream = StepStream::compute;
  bool host_waits = false;
  std::int32_t bucket = nobody;
  std::int32_t launches = 1;
  std::uint8_t communicator = 0;
  float memory_fraction = 0;
  Duration host{}, work{}, last_launch{}, latency{}, take_up{};
  Interference beside{};
};

inline PricedTask kernel(Duration work, float memory_fraction = 0) {
  PricedTask task;
  task.work = work;
  task.memory_fraction = memory_fraction;
  return task;
}

inline PricedTask collective(Duration work, Interference beside = {}) {
  PricedTask task;
  task.operation = Operation::all_reduce;
  task.stream = StepStream::communication;
  task.work = work;
  task.beside = beside;
  task.bucket = 0;
  return task;
}

/// The host is busy for `time`, without occupying the device.
inline PricedTask host(Duration time) {
  PricedTask task;
  task.operation = Operation::hook;
  task.stream = StepStream::host;
  task.host = time;
  return task;
}

/// A kernel that runs on the host's own thread.
inline PricedTask host_kernel(Duration work) {
  PricedTask task = kernel(work);
  task.stream = StepStream::host;
  return task;
}

/// A place in the compute stream behind what it waits for.
inline PricedTask wait() {
  PricedTask task;
  task.operation = Operation::wait;
  return task;
}

/// `task`, which the host enqueues in `host` by that many launches; `last` of its work can only run
/// once the last launch is in.
inline PricedTask launched(PricedTask task, Duration host, int launches = 1, Duration last = {}) {
  task.host = host;
  task.launches = launches;
  task.last_launch = last;
  return task;
}

/// `task`, before which the host stands still until what it waits for has ended.
inline PricedTask blocking(PricedTask task) {
  task.host_waits = true;
  return task;
}

/// What a rank does, in rows of which each has a piece of work of its own, and the costs of that
/// work.
struct Script {
  FlatStep schedule;
  Costs costs;

  Script() { schedule.buckets.resize(1); }

  /// The number of its row. Before a task of another stream's that makes the host wait there is a
  /// row for that.
  std::uint32_t add(const PricedTask& priced, const std::vector<std::uint32_t>& after = {}) {
    if (priced.host_waits && priced.stream != StepStream::host) add(host({}), after);
    const auto index = static_cast<std::uint32_t>(schedule.tasks.size());
    FlatTask& task = schedule.tasks.emplace_back();
    task.operation = priced.operation;
    task.stream = priced.stream;
    task.bucket = priced.bucket;
    task.work = index;
    task.after_begin = static_cast<std::uint32_t>(schedule.after.size());
    task.after_count = static_cast<std::uint32_t>(after.size());
    schedule.after.insert(schedule.after.end(), after.begin(), after.end());

    Work& work = schedule.works.emplace_back();
    work.operation = priced.operation;
    work.launches = priced.launches;
    work.communicator = priced.communicator;
    work.handed_over = priced.take_up > Duration::zero();
    // No two alike, and only what has a time computes.
    (is_kernel(priced.operation) && priced.work > Duration::zero() ? work.traffic : work.payload) =
        Bytes{index + 1};

    WorkCost& cost = costs.works.emplace_back();
    cost.host = priced.host;
    cost.first_launch = priced.launches > 1 ? priced.host / priced.launches : priced.host;
    cost.work = priced.work;
    cost.last_launch = priced.last_launch;
    cost.latency = priced.latency;
    cost.take_up = priced.take_up;
    cost.memory_fraction = priced.memory_fraction;
    if (priced.work > Duration::zero())
      cost.launch_rate = static_cast<float>(priced.launches / in_seconds(priced.work));
    cost.beside = priced.beside;
    return index;
  }

  Work& work_of(std::uint32_t task) { return schedule.works[schedule.tasks[task].work]; }
  const WorkCost& cost_of(const FlatTask& task) const { return costs.works[task.work]; }
};

/// When each rank did what its script says, and when the last of them was done.
struct Timeline {
  std::vector<std::vector<TaskTimes>> ranks;  ///< [rank][row of its script]
  Instant end{};
};

/// Scripts of ranks as a job: a program for each, with a task for each row, and the same prices.
struct ScriptedJob {
  program::Job job;
  JobCosts costs;

  explicit ScriptedJob(std::span<const Script> scripts) {
    std::uint8_t communicators = 1;
    for (const Script& each : scripts)
      for (const Work& work : each.schedule.works)
        communicators = std::max<std::uint8_t>(communicators, work.communicator + 1);
    const int at_once = scripts.front().schedule.collectives_at_once;
    add_streams(communicators, static_cast<std::uint8_t>(at_once));
    job.own.deeds.push_back({program::Compute{}});
    std::vector<std::int32_t> world;
    for (std::size_t rank = 0; rank < scripts.size(); ++rank)
      world.push_back(static_cast<std::int32_t>(rank));
    for (std::uint8_t c = 0; c < communicators; ++c) {
      job.communicators.push_back({"", static_cast<std::uint8_t>(at_once), {world}});
      job.own.deeds.push_back({program::Collective{.communicator = c}});
    }
    for (const Script& each : scripts)
      job.works.insert(job.works.end(), each.schedule.works.begin(), each.schedule.works.end());
    for (const Script& each : scripts) add_program(each);
  }

  Timeline by_rank(const JobTimeline& of_job) const {
    Timeline timeline{{}, of_job.end};
    for (const std::uint32_t its_class : of_job.class_of)
      timeline.ranks.push_back(of_job.classes[its_class]);
    return timeline;
  }

 private:
  void add_streams(std::uint8_t communicators, std::uint8_t at_once) {
    job.streams = {{.name = "host"}, {.name = "compute"}};
    for (std::uint8_t c = 0; c < communicators; ++c)
      job.streams.push_back({"communication", true, true, at_once});
    job.streams.push_back({.name = "aside", .beside = true, .halts = true});
    job.streams.push_back({.name = "to_host", .beside = true});
    job.streams.push_back({.name = "to_device", .beside = true});
  }

  std::uint8_t stream_of(const FlatTask& task, const Work& work) const {
    const auto communicators = static_cast<std::uint8_t>(job.communicators.size());
    switch (task.stream) {
      case StepStream::host:
        return 0;
      case StepStream::compute:
        return 1;
      case StepStream::communication:
        return static_cast<std::uint8_t>(2 + work.communicator);
      case StepStream::aside:
        return static_cast<std::uint8_t>(2 + communicators);
      case StepStream::to_host:
        return static_cast<std::uint8_t>(3 + communicators);
      case StepStream::to_device:
        return static_cast<std::uint8_t>(4 + communicators);
      case StepStream::copy_in:
      case StepStream::gather:
      case StepStream::scatter:
      case StepStream::replicate:
        break;
    }
    throw std::logic_error("no script has shards");
  }

  void add_program(const Script& script) {
    Costs& prices = costs.kinds.emplace_back();
    prices.works.resize(job.works.size());
    costs.of_rank.push_back(static_cast<std::uint16_t>(costs.of_rank.size()));
    std::ranges::copy(script.costs.works,
                      prices.works.begin() + static_cast<std::ptrdiff_t>(works_));
    program::Program& program = job.programs.emplace_back();
    job.program_of.push_back(static_cast<std::uint16_t>(job.program_of.size()));
    for (const FlatTask& task : script.schedule.tasks) {
      const Work& work = script.schedule.work_of(task);
      const auto after = script.schedule.waits_for(task);
      program.after.insert(program.after.end(), after.begin(), after.end());
      program.tasks.push_back({.work = static_cast<std::uint32_t>(works_ + task.work),
                               .deed = is_collective(task.operation) ? 1U + work.communicator : 0,
                               .after_end = static_cast<std::uint32_t>(program.after.size()),
                               .stream = stream_of(task, work)});
    }
    works_ += script.schedule.works.size();
  }

  std::size_t works_ = 0;  ///< of the ranks so far
};

inline Timeline simulate(std::span<const Script> scripts) {
  const ScriptedJob scripted(scripts);
  return scripted.by_rank(ddpsim::simulate(scripted.job, scripted.costs));
}
inline Timeline simulate(const Script& script) {
  return simulate(std::span(&script, 1));
}

/// From when to when, counted from the start of the step.
struct Window {
  Duration from{}, to{};
  bool operator==(const Window&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Window& window) {
  return out << '[' << in_ms(window.from) << ", " << in_ms(window.to) << "] ms";
}

inline Window work_of(const TaskTimes& at) {
  return {at.start.time_since_epoch(), at.end.time_since_epoch()};
}
inline Window work_of(const Timeline& timeline, std::uint32_t task, std::size_t rank = 0) {
  return work_of(timeline.ranks.at(rank).at(task));
}

inline Window enqueueing_of(const TaskTimes& at) {
  return {at.issued.time_since_epoch(), at.enqueued.time_since_epoch()};
}
inline Window enqueueing_of(const Timeline& timeline, std::uint32_t task, std::size_t rank = 0) {
  return enqueueing_of(timeline.ranks.at(rank).at(task));
}

inline Duration length(const Timeline& timeline) {
  return timeline.end.time_since_epoch();
}

inline bool same(const std::vector<TaskTimes>& a, const std::vector<TaskTimes>& b) {
  return std::ranges::equal(a, b, [](const TaskTimes& one, const TaskTimes& other) {
    return one.issued == other.issued && one.enqueued == other.enqueued &&
           one.start == other.start && one.end == other.end;
  });
}
inline bool same(const Timeline& a, const Timeline& b) {
  return a.end == b.end &&
         std::ranges::equal(a.ranks, b.ranks,
                            [](const auto& one, const auto& other) { return same(one, other); });
}

}  // namespace ddpsim::fixtures
