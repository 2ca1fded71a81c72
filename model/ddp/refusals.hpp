#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ddp/step_works.hpp"
#include "model/ddp/training.hpp"

namespace ddpsim {

// Steps that PyTorch would refuse, or wait for for ever, and those that are not modelled. What the
// training alone decides is a sentence (empty: it can be), so that the reader of a scenario can name the
// place; what the workload decides as well throws std::invalid_argument.

constexpr bool is_zero_step(CommHookKind kind) {
  return kind == CommHookKind::zero_step || kind == CommHookKind::zero_step_interleaved;
}

/// Why PyTorch's ZeRO hook would fail or never begin in this training.
std::string zero_step_refusal(const Training& training);

/// Why a step with `training.delayed` cannot be.
std::string delayed_refusal(const Training& training);

/// A dynamic graph that does not look for unused parameters waits for them in vain (rule R35).
void check_unused(const StepWorks& works, const Training& training,
                  const std::vector<std::int32_t>& unused);

/// The hook that sends delayed gradients must not come before them.
void check_delayed(const StepWorks& works, const Training& training);

void check_zero_step(const StepWorks& works, const Training& training);

}  // namespace ddpsim
