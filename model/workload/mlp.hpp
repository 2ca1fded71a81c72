#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim {

/// The multilayer perceptron's part of build_workload: one layer per Linear and the ReLU behind it,
/// the last with the loss instead. Sets no name. Throws std::invalid_argument if there are fewer
/// than two widths, or one is not positive.
Workload mlp_workload(const MlpShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
