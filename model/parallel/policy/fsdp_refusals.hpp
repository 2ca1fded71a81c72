#pragma once

#include <optional>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Why so many ranks cannot be the replicas and groups that settings of fsdp say.
std::optional<Refusal> mesh_refusal(const Training& training, int ranks);

/// Throws std::invalid_argument where fully_shard cannot do the step, or it is not modelled.
void check_fully_shard(const StepBuilder& step);

}  // namespace ddpsim
