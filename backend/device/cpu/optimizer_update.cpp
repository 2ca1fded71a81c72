#include "backend/device/cpu/optimizer_update.hpp"

#include <cmath>
#include <cstddef>

namespace ddpsim {
namespace {

struct Rates {
  static constexpr float learning = 1e-4F, momentum = 0.9F, decay = 1e-4F, beta1 = 0.9F,
                         beta2 = 0.999F, epsilon = 1e-8F;
};

}  // namespace

void update_parameter(Optimizer optimizer, int step, std::span<float> parameter,
                      std::span<const float> gradient, const OptimizerState& state) {
  const std::span<float> momentum = state.momentum, variance = state.variance;
  const std::size_t count = parameter.size();
  if (optimizer == Optimizer::none || !runs_on_ranks(optimizer)) return;
  if (optimizer == Optimizer::sgd) {
    for (std::size_t i = 0; i < count; ++i) {
      momentum[i] = Rates::momentum * momentum[i] + (gradient[i] + Rates::decay * parameter[i]);
      parameter[i] -= Rates::learning * momentum[i];
    }
    return;
  }
  const auto steps = static_cast<float>(step);
  const float first = 1 / (1 - std::pow(Rates::beta1, steps));
  const float second = 1 / (1 - std::pow(Rates::beta2, steps));
  const float decay = optimizer == Optimizer::adam ? 0 : Rates::learning * Rates::decay;
  for (std::size_t i = 0; i < count; ++i) {
    momentum[i] = Rates::beta1 * momentum[i] + (1 - Rates::beta1) * gradient[i];
    variance[i] = Rates::beta2 * variance[i] + (1 - Rates::beta2) * gradient[i] * gradient[i];
    parameter[i] -= decay * parameter[i] + Rates::learning * (momentum[i] * first) /
                                               (std::sqrt(variance[i] * second) + Rates::epsilon);
  }
}

}  // namespace ddpsim
