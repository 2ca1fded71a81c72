#include "model/workload/optimizer.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

struct Law {
  std::string_view name;
  int passes;      ///< reads and writes of every element
  int operations;  ///< elementwise operations over all parameters
};

/// Passes by statement, reads + writes:
///   loop   m: mul 2, mul 2, add 3; v: mul 2, pow 2, mul 2, add 3;
///          update: mul 2, sqrt 2, add 2, div 3, sub 3; decay: mul 2, sub 3
///   adamw  decay mul 2, lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4
///   adam   as adamw, without the decay
///   fused  reads parameter, gradient, m, v; writes parameter, m, v
///   sgd    weight decay add 3, momentum mul 2 and add 3, update add 3
constexpr std::array<Law, all_optimizers.size()> laws{{{"none", 0, 0},
                                                       {"sgd", 11, 4},
                                                       {"adam", 18, 7},
                                                       {"adamw", 20, 8},
                                                       {"adamw-fused", 7, 1},
                                                       {"adamw-loop", 33, 14}}};

const Law& law_of(Optimizer optimizer) {
  return laws[static_cast<std::size_t>(optimizer)];
}

constexpr std::int64_t elements_per_block = 65536, blocks_per_launch = 320,
                       tensors_per_launch = 110;

}  // namespace

std::string_view name_of(Optimizer optimizer) {
  return law_of(optimizer).name;
}

std::optional<Optimizer> optimizer_named(std::string_view name) {
  for (const Optimizer optimizer : all_optimizers)
    if (name_of(optimizer) == name) return optimizer;
  return std::nullopt;
}

std::vector<Kernel> optimizer_kernels(Optimizer optimizer, const Workload& workload) {
  std::vector<Kernel> kernels;
  const Law& law = law_of(optimizer);
  if (optimizer == Optimizer::none) return kernels;
  if (optimizer == Optimizer::adamw_loop) {
    for (const Parameter& parameter : workload.parameters) {
      Kernel kernel;
      kernel.name = "adamw." + parameter.name;
      kernel.traffic = law.passes * parameter.size();
      kernel.launches = law.operations;
      kernels.push_back(kernel);
    }
    return kernels;
  }
  const auto pieces = [](std::int64_t whole, std::int64_t piece) {
    return (whole + piece - 1) / piece;
  };
  const std::int64_t by_size = pieces(workload.elements(), elements_per_block * blocks_per_launch);
  const std::int64_t by_count =
      pieces(static_cast<std::int64_t>(workload.parameters.size()), tensors_per_launch);
  Kernel kernel;
  kernel.name = law.name;
  kernel.traffic = law.passes * workload.gradient_size();
  kernel.launches =
      static_cast<int>(law.operations * std::max({by_size, by_count, std::int64_t{1}}));
  return {kernel};
}

Caller optimizer_caller(Optimizer optimizer) {
  return optimizer == Optimizer::adamw_loop ? Caller::python_loop : Caller::library;
}

}  // namespace ddpsim
