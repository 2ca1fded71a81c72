#pragma once

#include <cstdint>
#include <vector>

#include "model/base/index.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Which gradients a kernel of a layer's backward pass writes.
struct GradientBinding {
  std::int32_t result = nobody;     ///< a GEMM whose result is this parameter's gradient
  std::vector<std::int32_t> fills;  ///< parameters whose gradient it writes beside its own work
};

/// [layer][kernel of its backward pass]: every used parameter's gradient is written by exactly one
/// kernel, no later than the one that makes it ready; by a GEMM whose result has its size, if there
/// is one.
std::vector<std::vector<GradientBinding>> bind_gradients(const Workload& workload);

/// [kernel] of a layer's passes: the parameter that a GEMM multiplies with, or nobody.
struct WeightBindings {
  std::vector<std::int32_t> forward, backward;
};

/// [layer], found from shapes among the kernels of a parameter's module, or all of its layer where
/// these are not known. A kernel that writes a gradient, by `gradients`, reads no parameter,
/// which changes from step to step.
std::vector<WeightBindings> bind_weights(
    const Workload& workload, const std::vector<std::vector<GradientBinding>>& gradients);

}  // namespace ddpsim
