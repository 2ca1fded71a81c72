#pragma once

#include <span>

#include "model/workload/optimizer.hpp"

namespace ddpsim {

/// What an optimizer keeps of one parameter; empty where it keeps nothing.
struct OptimizerState {
  std::span<float> momentum, variance;
};

/// The real update of SGD (momentum, weight decay) or Adam(W) in one loop. `step`: so many have
/// been made with this one, for Adam's bias corrections. Optimizers that no rank computes
/// (runs_on_ranks) leave the parameter as it is.
void update_parameter(Optimizer optimizer, int step, std::span<float> parameter,
                      std::span<const float> gradient, const OptimizerState& state);

}  // namespace ddpsim
