#pragma once

#include <cstdint>
#include <vector>

#include "model/parallel/write/step_works.hpp"

namespace ddpsim {

/// [rank] The parameters that it updates, in the order in which it sends them. Those without a
/// gradient are somebody's too.
using OwnedParameters = std::vector<std::vector<std::int32_t>>;

/// ZeroRedundancyOptimizer's: the largest first, each to the rank that has the fewest elements so
/// far. Source: torch/distributed/optim/zero_redundancy_optimizer.py _partition_parameters (rule
/// F79).
OwnedParameters owned_by_size(const StepWorks& works, int ranks);

/// In turn, as they were registered.
OwnedParameters owned_in_turn(const StepWorks& works, int ranks);

}  // namespace ddpsim
