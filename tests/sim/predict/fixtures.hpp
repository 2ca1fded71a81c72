#pragma once

#include <algorithm>
#include <ostream>
#include <span>
#include <vector>

#include "sim/engine/simulate.hpp"

/// Schedules written task by task, and what became of them.
namespace ddpsim::fixtures {

/// A task and its prices in one piece. Script::add parts it into a task, a piece of work and a
/// cost.
struct PricedTask {
  Operation operation = Operation::forward;
  Stream stream = Stream::compute;
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
  task.stream = Stream::communication;
  task.work = work;
  task.beside = beside;
  task.bucket = 0;
  return task;
}

/// The host is busy for `time`, without occupying the device.
inline PricedTask host(Duration time) {
  PricedTask task;
  task.operation = Operation::hook;
  task.stream = Stream::host;
  task.host = time;
  return task;
}

/// A kernel that runs on the host's own thread.
inline PricedTask host_kernel(Duration work) {
  PricedTask task = kernel(work);
  task.stream = Stream::host;
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

/// A schedule in which every task has a piece of work of its own, and the costs of that work.
struct Script {
  Schedule schedule;
  Costs costs;

  Script() { schedule.buckets.resize(1); }

  std::uint32_t add(const PricedTask& priced, const std::vector<std::uint32_t>& after = {}) {
    const auto index = static_cast<std::uint32_t>(schedule.tasks.size());
    Task& task = schedule.tasks.emplace_back();
    task.operation = priced.operation;
    task.stream = priced.stream;
    task.host_waits = priced.host_waits;
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
  const WorkCost& cost_of(const Task& task) const { return costs.of(task); }
};

/// Scripts of ranks as a job: a program for each, and the same prices.
struct ScriptedJob {
  program::Job job;
  JobCosts costs;
  std::vector<std::vector<std::uint32_t>> places;  ///< [rank][task of its schedule]

  explicit ScriptedJob(std::span<const Script> scripts) {
    std::uint8_t communicators = 1;
    for (const Script& each : scripts)
      for (const Work& work : each.schedule.works)
        communicators = std::max<std::uint8_t>(communicators, work.communicator + 1);
    const int at_once = scripts.front().schedule.collectives_at_once;
    add_streams(communicators, static_cast<std::uint8_t>(at_once));
    job.own.deeds.push_back({program::Compute{}});
    job.own.deeds.push_back({program::Wait{}});
    std::vector<std::int32_t> world;
    for (std::size_t rank = 0; rank < scripts.size(); ++rank)
      world.push_back(static_cast<std::int32_t>(rank));
    for (std::uint8_t c = 0; c < communicators; ++c) {
      job.communicators.push_back({"", static_cast<std::uint8_t>(at_once), {world}});
      job.own.deeds.push_back({program::Collective{.communicator = c}});
    }
    for (const Script& each : scripts) {
      // The last one costs nothing.
      job.works.insert(job.works.end(), each.schedule.works.begin(), each.schedule.works.end());
      job.works.emplace_back();
    }
    for (const Script& each : scripts) add_program(each);
  }

  /// [rank][task of its schedule]
  Timeline by_schedule(const JobTimeline& of_job) const {
    Timeline timeline;
    timeline.end = of_job.end;
    if (!of_job.details.empty())
      timeline.details = of_job.details[of_job.details_of[of_job.class_of.front()]];
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      auto& times = timeline.ranks.emplace_back();
      for (const std::uint32_t place : places[rank])
        times.push_back(of_job.classes[of_job.class_of[rank]][place]);
    }
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

  std::uint8_t stream_of(const Task& task, const Work& work) const {
    const auto communicators = static_cast<std::uint8_t>(job.communicators.size());
    switch (task.stream) {
      case Stream::host:
        return 0;
      case Stream::compute:
        return 1;
      case Stream::communication:
        return static_cast<std::uint8_t>(2 + work.communicator);
      case Stream::aside:
        return static_cast<std::uint8_t>(2 + communicators);
      case Stream::to_host:
        return static_cast<std::uint8_t>(3 + communicators);
      case Stream::to_device:
        return static_cast<std::uint8_t>(4 + communicators);
    }
    return 0;
  }

  void add_program(const Script& script) {
    Costs& prices = costs.kinds.emplace_back();
    prices.works.resize(job.works.size());
    costs.of_rank.push_back(static_cast<std::uint16_t>(costs.of_rank.size()));
    std::ranges::copy(script.costs.works,
                      prices.works.begin() + static_cast<std::ptrdiff_t>(works_));
    program::Program& program = job.programs.emplace_back();
    job.program_of.push_back(static_cast<std::uint16_t>(job.program_of.size()));
    auto& my_places = places.emplace_back();
    const auto idle = static_cast<std::uint32_t>(works_ + script.schedule.works.size());
    for (const Task& task : script.schedule.tasks) {
      const Work& work = script.schedule.work_of(task);
      const auto wait_for = [&] {
        for (const std::uint32_t earlier : script.schedule.waits_for(task))
          program.after.push_back(earlier < my_places.size() ? my_places[earlier] : earlier);
      };
      program::Task added;
      if (task.host_waits && task.stream != Stream::host) {
        wait_for();
        added.work = idle;
        added.deed = 1;
        added.after_end = static_cast<std::uint32_t>(program.after.size());
        program.tasks.push_back(added);
      }
      wait_for();
      added.work = static_cast<std::uint32_t>(works_ + task.work);
      added.deed = is_collective(task.operation) ? 2U + work.communicator : 0;
      added.stream = stream_of(task, work);
      added.after_end = static_cast<std::uint32_t>(program.after.size());
      my_places.push_back(static_cast<std::uint32_t>(program.tasks.size()));
      program.tasks.push_back(added);
    }
    works_ = idle + 1;
  }

  std::size_t works_ = 0;  ///< of the ranks so far
};

inline Timeline simulate(std::span<const Script> scripts) {
  const ScriptedJob scripted(scripts);
  return scripted.by_schedule(ddpsim::simulate(scripted.job, scripted.costs));
}
inline Timeline simulate(const Script& script) {
  return simulate(std::span(&script, 1));
}
/// All ranks alike.
inline Timeline simulate(const Schedule& schedule, const Costs& costs) {
  Script script;
  script.schedule = schedule;
  script.costs = costs;
  return simulate(script);
}

/// From when to when, counted from the start of the step.
struct Window {
  Duration from{}, to{};
  bool operator==(const Window&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Window& window) {
  return out << '[' << in_ms(window.from) << ", " << in_ms(window.to) << "] ms";
}

inline Window work_of(const Timeline& timeline, std::uint32_t task, std::size_t rank = 0) {
  const TaskTimes& at = timeline.ranks.at(rank).at(task);
  return {at.start.time_since_epoch(), at.end.time_since_epoch()};
}

inline Window enqueueing_of(const Timeline& timeline, std::uint32_t task, std::size_t rank = 0) {
  const TaskTimes& at = timeline.ranks.at(rank).at(task);
  return {at.issued.time_since_epoch(), at.enqueued.time_since_epoch()};
}

inline Duration length(const Timeline& timeline) {
  return timeline.end.time_since_epoch();
}

inline bool same(const Timeline& a, const Timeline& b) {
  if (a.end != b.end || a.ranks.size() != b.ranks.size()) return false;
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    if (a.ranks[r].size() != b.ranks[r].size()) return false;
    for (std::size_t i = 0; i < a.ranks[r].size(); ++i) {
      const TaskTimes &one = a.ranks[r][i], &other = b.ranks[r][i];
      if (one.issued != other.issued || one.enqueued != other.enqueued ||
          one.start != other.start || one.end != other.end)
        return false;
    }
  }
  return true;
}

}  // namespace ddpsim::fixtures
