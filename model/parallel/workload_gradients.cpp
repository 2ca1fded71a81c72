#include "model/parallel/workload_gradients.hpp"

namespace ddpsim {

WorkloadGradients::WorkloadGradients(const Workload& workload)
    : frozen(workload.frozen_parameters), arrival(arrival_order(workload)) {
  names.reserve(workload.parameters.size());
  gradients.reserve(workload.parameters.size());
  for (const Parameter& parameter : workload.parameters) {
    names.push_back(parameter.name);
    gradients.push_back({parameter.size(), parameter.dtype, parameter.sparse, parameter.unused});
  }
}

}  // namespace ddpsim
