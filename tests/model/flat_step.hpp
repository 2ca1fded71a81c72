#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/parallel/order/build_job.hpp"
#include "model/parallel/write/step_writer.hpp"
#include "model/timeline/job_timeline.hpp"

/// Steps of data-parallel training as rows that tests read, and write by hand.
namespace ddpsim {

/// A task of a program with what its deed and its origin say, in one row.
struct FlatTask {
  Operation operation = Operation::forward;
  StepStream stream = StepStream::compute;
  std::int16_t micro_batch = 0;
  std::uint32_t work = 0;  ///< index into FlatStep::works
  std::int32_t layer = nobody, kernel = nobody, parameter = nobody, bucket = nobody;
  std::int32_t user_hook = nobody;
  program::Purpose purpose = program::Purpose::gradients;
  std::string hook_step{};  ///< a comm hook's: what people call it
  std::uint32_t after_begin = 0, after_count = 0;
  std::int32_t gradient = nobody;  ///< collectives: the task that made its input ready
  std::int32_t root = 0;           ///< of a broadcast
  bool unawaited = false;          ///< nobody waits for it
  /// What a kernel divides by, and the sum of an all-reduce that makes means.
  std::int32_t divisor = 1;
};

/// Gradients reduced together, and whether where one of them lies.
struct FlatBucket : program::ParameterGroup {
  bool in_place = false;
};

/// The program of a kind of rank, in rows.
struct FlatStep {
  std::vector<Work> works{};
  std::vector<FlatTask> tasks{};
  std::vector<std::uint32_t> after{};
  std::vector<FlatBucket> buckets{};
  std::vector<program::Mark> logged{};  ///< first and last tasks
  Passes passes{};
  int ranks = 1;
  int collectives_at_once = 1;

  const Work& work_of(const FlatTask& task) const { return works[task.work]; }
  std::span<const std::uint32_t> waits_for(const FlatTask& task) const {
    return {after.data() + task.after_begin, task.after_count};
  }
  /// Kernels run on the host thread.
  bool synchronous() const {
    return std::ranges::any_of(tasks, [this](const FlatTask& task) {
      return task.stream == StepStream::host && work_of(task).computes();
    });
  }
  /// The host stands still until what it waits for has ended.
  bool host_waits(const FlatTask& task) const {
    return task.stream == StepStream::host && task.after_count > 0;
  }
};

inline StepStream stream_named(std::string_view name) {
  constexpr std::array<std::string_view, 6> names{"host",  "compute", "communication",
                                                  "aside", "to host", "to device"};
  const auto queue = name.starts_with("communication") ? names[2] : name;
  return static_cast<StepStream>(std::ranges::find(names, queue) - names.begin());
}

inline std::int32_t divisor_of(const program::Job& job, const program::Action& action) {
  const auto* scale = std::get_if<program::Scale>(&action);
  const auto* rows = std::get_if<program::TakeRows>(&action);
  const float factor = scale != nullptr ? scale->factor : rows != nullptr ? rows->factor : 1;
  if (std::isinf(factor)) return 0;
  if (factor > 0 && factor < 1) return static_cast<std::int32_t>(std::lround(1 / factor));
  const auto* sent = std::get_if<program::Collective>(&action);
  if (sent != nullptr && sent->reduction == program::Reduction::mean)
    return static_cast<std::int32_t>(job.ranks());
  return 1;
}

/// What the ranks of a kind do, but for what people see as part of another task.
inline FlatStep flat(const program::Job& job, std::size_t kind = 0) {
  const program::Program& program = job.programs.at(kind);
  JobTimeline nowhen;
  nowhen.classes.emplace_back(program.tasks.size());
  nowhen.class_of.assign(job.ranks(), 0);
  const auto rank = static_cast<std::size_t>(
      std::ranges::find(job.program_of, static_cast<std::uint16_t>(kind)) - job.program_of.begin());
  const RankOfJob of(job, nowhen, rank);
  FlatStep step;
  step.works = job.works;
  for (const program::ParameterGroup& group : job.groups) {
    const auto index = static_cast<std::int32_t>(step.buckets.size());
    const bool has_memory = std::ranges::any_of(job.buffers, [&](const program::Buffer& buffer) {
      return buffer.holds == program::Holds::bucket && buffer.index == index;
    });
    step.buckets.push_back({group, !has_memory});
  }
  step.passes = job.passes;
  step.ranks = static_cast<int>(job.ranks());
  for (const program::Communicator& each : job.communicators)
    step.collectives_at_once = std::max<int>(step.collectives_at_once, each.at_once);
  std::vector<std::uint32_t> places;  // [task of the program] where it is in the step
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const program::Task& task = program.tasks[t];
    places.push_back(static_cast<std::uint32_t>(step.tasks.size()));
    if (of.is_part_of_another(task)) {
      if (!step.tasks.empty()) --places.back();
      continue;
    }
    const program::Origin& origin = of.origin_of(task);
    FlatTask& row = step.tasks.emplace_back();
    row.operation = operation_of(job, task);
    row.stream = stream_named(job.streams[task.stream].name);
    row.micro_batch = task.micro_batch;
    row.work = task.work;
    row.layer = origin.layer;
    row.kernel = origin.kernel;
    row.parameter = origin.parameter;
    row.bucket = origin.group;
    row.user_hook = origin.hook;
    row.purpose = origin.purpose;
    row.hook_step = job.labels[at(origin.label)];
    row.divisor = divisor_of(job, of.action_of(task));
    if (const auto* sent = std::get_if<program::Collective>(&of.action_of(task)))
      row.root = sent->root, row.unawaited = sent->unawaited;
    row.after_begin = static_cast<std::uint32_t>(step.after.size());
    for (const std::uint32_t earlier : program.waits_for(t))
      if (std::find(step.after.begin() + row.after_begin, step.after.end(), places[earlier]) ==
          step.after.end())
        step.after.push_back(places[earlier]);
    row.after_count = static_cast<std::uint32_t>(step.after.size()) - row.after_begin;
  }
  for (const program::Mark& mark : program.marks) {
    if (mark.kind == program::Mark::Kind::ready)
      step.tasks[places[mark.task]].gradient = static_cast<std::int32_t>(places[mark.of]);
    else
      step.logged.push_back({mark.kind, places[mark.task], places[mark.of]});
  }
  return step;
}

/// What the first rank does in a step of the training.
inline FlatStep flat_step(const StepWorks& works, const Training& training) {
  return flat(build_job(works, training));
}

}  // namespace ddpsim
