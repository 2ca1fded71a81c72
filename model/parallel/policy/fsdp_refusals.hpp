#pragma once

#include <optional>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Why a step cannot be sharded as its variant of fsdp does it, or it is not modelled.
std::optional<Refusal> fsdp_refusal(const WorkloadGradients& workload, const Training& training,
                                    const StepWriter::Device& device);

/// Throws std::invalid_argument where the variant of fsdp cannot do the step, or it is not
/// modelled.
void check_fsdp(const StepBuilder& step);

}  // namespace ddpsim
