#pragma once

#include <vector>

#include "model/workload/workload.hpp"

namespace ddpsim {

/// The network with those parameters frozen ([parameter]): they get no gradient and are not
/// updated. A product that makes a frozen parameter's gradient is not run. Of layers in front of
/// all that are trained nothing is run backward, and autograd keeps nothing. What else makes
/// gradients of frozen parameters (of biases and norms, in kernels with other work) stays, as do
/// inputs that are kept for products that are not run any more.
/// Throws std::invalid_argument if nothing is left to train.
Workload freeze(Workload workload, const std::vector<bool>& which);

}  // namespace ddpsim
