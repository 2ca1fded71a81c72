#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {

/// Gradients that lie in a bucket one behind the other.
struct CommBucket {
  std::vector<MatrixShape> gradients{};
  DType type = DType::fp32;

  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const MatrixShape& each : gradients) sum += each.rows * each.columns;
    return sum;
  }
};

/// The communicator of all ranks of a job in groups of so many next to each other; 0: of all.
inline std::int16_t communicator_in(program::Job& job, std::int32_t ranks, std::int32_t size) {
  const std::int32_t each = size <= 0 || size >= ranks ? ranks : size;
  const std::string name = "groups of " + std::to_string(each);
  for (std::size_t c = 0; c < job.communicators.size(); ++c)
    if (job.communicators[c].name == name) return static_cast<std::int16_t>(c);
  program::Communicator& made = job.communicators.emplace_back();
  made.name = name;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    if (rank % each == 0) made.groups.emplace_back();
    made.groups.back().push_back(rank);
  }
  return static_cast<std::int16_t>(job.communicators.size() - 1);
}

/// What a comm hook does with a bucket, and the job in whose memory that lies.
struct WrittenHook {
  program::JobMemory memory;
  program::Slice data;
  std::vector<HookTask> tasks;

  /// The one task of that label; its action, as what it is.
  const HookTask& task(std::string_view label) const {
    const auto is_it = [&](const HookTask& task) { return task.label == label; };
    if (std::ranges::count_if(tasks, is_it) != 1)
      throw std::logic_error("not one task is called " + std::string(label));
    return *std::ranges::find_if(tasks, is_it);
  }
  template <typename Kind>
  const Kind& action(std::string_view label) const {
    return std::get<Kind>(task(label).action);
  }
  const program::Buffer& buffer(std::string_view name) const {
    const auto& all = memory.job.buffers;
    const auto found = std::ranges::find_if(
        all, [&](const program::Buffer& each) { return memory.job.labels[at(each.name)] == name; });
    if (found == all.end()) throw std::logic_error("no memory is called " + std::string(name));
    return *found;
  }
};

/// `call` says all but the communicators.
inline WrittenHook written_hook(const CommHook& hook, const CommBucket& bucket, HookCall call,
                                std::int32_t index = 0) {
  using program::Holds, program::Life, program::Start;
  WrittenHook written;
  program::JobMemory& memory = written.memory;
  memory.job.labels = {""};
  HookedBucket seen{.index = index, .matrices = bucket.gradients};
  std::int64_t begin = 0;
  for (const MatrixShape& shape : bucket.gradients) {
    seen.slots.push_back({.begin = begin, .count = shape.rows * shape.columns});
    begin += seen.slots.back().count;
  }
  written.data = seen.data = memory.add("b", index, Holds::bucket, bucket.type, bucket.elements(),
                                        Life::step, Start::zeros);
  for (program::Slice& slot : seen.slots) slot.buffer = seen.data.buffer;
  if (updates_parameters(hook.kind))
    seen.parameters = memory.add("weights", index, Holds::parameter, bucket.type, bucket.elements(),
                                 Life::job, Start::zeros);
  call.communicator = [&memory, ranks = call.ranks](std::int32_t size) {
    return communicator_in(memory.job, ranks, size);
  };
  written.tasks = tasks_of(memory, hook, seen, call);
  return written;
}

inline std::vector<HookTask> hook_tasks(const CommHook& hook, const CommBucket& bucket,
                                        const HookCall& call) {
  return written_hook(hook, bucket, call).tasks;
}

}  // namespace ddpsim
