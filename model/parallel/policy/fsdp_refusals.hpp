#pragma once

#include <optional>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Why a step cannot be sharded as fully_shard does it, or it is not modelled.
std::optional<Refusal> fully_shard_refusal(const WorkloadGradients& workload,
                                           const Training& training,
                                           const StepWriter::Device& device);

/// Throws std::invalid_argument where fully_shard cannot do the step, or it is not modelled.
void check_fully_shard(const StepBuilder& step);

}  // namespace ddpsim
