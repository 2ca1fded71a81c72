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

  std::vector<int> arrival;  ///< parameter indices in the order their hooks fire

  std::size_t parameters() const { return gradients.size(); }
};

}  // namespace ddpsim
