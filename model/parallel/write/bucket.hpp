#pragma once

#include <cstdint>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/parallel/comm_step.hpp"

namespace ddpsim {

/// Gradients reduced together, as a strategy plans them.
struct Bucket {
  std::vector<std::int32_t> parameters{};  ///< in the order they lie in it
  Bytes size{};
  bool in_place = false;  ///< it is the gradient of its one parameter, not memory of its own
  bool sparse = false;    ///< one sparse gradient, whose rows are gathered
  bool delayed = false;   ///< waited for by nobody (training.delay_all_reduce)
  /// Gradients that backward computes lie in it from the start, and are never copied there.
  bool views = false;
  std::vector<CommStep> steps{};  ///< of the comm hook; empty: an all-reduce of the bucket
  /// The shape of each gradient as the comm hook sees it; empty without a comm hook.
  std::vector<MatrixShape> gradients{};
  std::vector<LowRank> low_rank{};  ///< PowerSGD: in the order their P and Q lie in memory
};

}  // namespace ddpsim
