#pragma once

#include <string>
#include <vector>

#include "model/parallel/bucketing.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// The gradients of a workload, as the assignment of buckets and the rules in refusals.hpp see
/// them.
struct WorkloadGradients {
  explicit WorkloadGradients(const Workload& workload);

  // [parameter]
  std::vector<std::string> names;
  std::vector<GradientInfo> gradients;

  /// Settings number these behind the parameters that are trained.
  std::vector<FrozenParameter> frozen;

  /// Parameter indices in the order in which their hooks fire; unused ones come last. Buckets are
  /// assigned by it. StrategyTasks::gradient_ready says when it is called in this order too.
  std::vector<int> arrival;

  std::size_t parameters() const { return gradients.size(); }
};

}  // namespace ddpsim
