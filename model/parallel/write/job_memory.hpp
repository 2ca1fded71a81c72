#pragma once

#include <algorithm>
#include <string_view>

#include "model/program/job.hpp"

namespace ddpsim::program {

constexpr auto nowhere = static_cast<std::int16_t>(nobody);

/// The buffers of a job that is being made.
struct JobMemory {
  Job job;

  Slice add(std::string_view name, std::int32_t index, Holds holds, DType type,
            std::int64_t elements, Life life = Life::step, Start start = Start::undefined) {
    job.buffers.push_back({.holds = holds,
                           .index = index,
                           .name = label(name),
                           .type = type,
                           .elements = elements,
                           .life = life,
                           .start = start});
    return {static_cast<BufferId>(job.buffers.size() - 1), nowhere, 0, elements};
  }
  /// Bytes that nobody looks at as numbers.
  Slice bytes(std::string_view name, std::int32_t index, Holds holds, Bytes size,
              Life life = Life::step, Start start = Start::undefined) {
    return add(name, index, holds, DType::fp8_e4m3, size.count, life, start);
  }
  /// The number of a label of the job, which is added if it is new.
  std::int16_t label(std::string_view name) {
    auto found = std::ranges::find(job.labels, name);
    if (found == job.labels.end()) found = job.labels.emplace(job.labels.end(), name);
    return static_cast<std::int16_t>(found - job.labels.begin());
  }
  Operands list(const std::vector<Slice>& slices) { return job.own.add(slices); }
};

}  // namespace ddpsim::program
