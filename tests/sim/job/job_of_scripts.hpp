#pragma once

#include <span>
#include <vector>

#include "sim/job/run_job.hpp"
#include "tests/sim/predict/fixtures.hpp"

namespace ddpsim::fixtures {

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
          program.after.push_back(my_places[earlier]);
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

}  // namespace ddpsim::fixtures
