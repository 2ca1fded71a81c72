#pragma once

#include <optional>
#include <span>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Why the ZeRO that `training` has as its strategy cannot do a step, or it is not modelled. Each
/// parameter is kept between steps in the type that `kept` has for it.
std::optional<Refusal> zero_refusal(const WorkloadGradients& workload, std::span<const DType> kept,
                                    const Training& training, const StepWriter::Device& device);

/// Throws std::invalid_argument where there is a zero_refusal.
void check_zero(const StepBuilder& step);

}  // namespace ddpsim
