#pragma once

#include "model/workload/architecture.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// DLRM with dense gradients of its tables and a loss of clicks. Throws std::invalid_argument if a
/// number is not positive, there is no table, or a tensor is beyond any memory.
Workload dlrm_workload(const DlrmShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
