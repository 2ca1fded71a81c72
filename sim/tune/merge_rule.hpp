#pragma once

#include <vector>

#include "sim/tune/partition.hpp"

namespace ddpsim {

/// time = startup + size x per_byte
struct LinearCost {
  double startup = 0;   ///< seconds
  double per_byte = 0;  ///< seconds
};

/// The line closest to `cost` between the smallest gradient and all of them together: least squares
/// of the relative error at sizes that double; neither term below zero.
LinearCost fit_linear(const PartitionProblem& problem);

/// MG-WFBP's buckets, as ends. In arrival order, a gradient travels with the next one if that one
/// is ready before the first would be past its startup:
///
///     ready of the next < start of this one's all-reduce + startup
///
/// where an all-reduce starts when its gradients are ready and the one before has ended. The rule
/// is the paper's optimum for a linear cost, as waiting less than a startup never loses.
/// Source: Shi, Chu, Li, "MG-WFBP: Efficient data communication for distributed synchronous SGD
/// algorithms", IEEE INFOCOM 2019, theorem 1 and algorithm 1.
std::vector<int> merge_rule(const PartitionProblem& problem, const LinearCost& cost);

}  // namespace ddpsim
