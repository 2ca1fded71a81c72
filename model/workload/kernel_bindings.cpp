#include "model/workload/kernel_bindings.hpp"

namespace ddpsim {
namespace {

void bind_gradient(const Workload& workload, std::int32_t index,
                   std::vector<GradientBinding>& bindings) {
  const Parameter& parameter = workload.parameters[at(index)];
  const Layer& layer = workload.layers[at(parameter.layer)];
  // If several GEMMs fit, it is the last one before the gradient is ready: the data gradient runs
  // before the weight gradient.
  for (std::int32_t k = parameter.ready_after;
       k >= 0 && parameter.shape.size() > 1 && !parameter.sparse; --k) {
    const auto& gemm = layer.backward[at(k)].gemm;
    if (!gemm || gemm->batch * gemm->m * gemm->n != parameter.elements()) continue;
    if (layer.backward[at(k)].recomputed == 1) break;  // checkpoints run forward first
    if (bindings[at(k)].result != nobody) continue;
    bindings[at(k)].result = index;
    return;
  }
  bindings[at(parameter.ready_after)].fills.push_back(index);
}

/// May the kernel multiply with a matrix of so many elements, which is of a module that runs the
/// kernels of `own`, if they are known?
bool may_read(const std::vector<Kernel>& kernels, std::size_t k, std::int64_t elements,
              const std::optional<KernelRange>& own) {
  const auto& gemm = kernels[k].gemm;
  if (!gemm || gemm->batch != 1 || gemm->k * gemm->n != elements) return false;
  return !own || (at(own->first) <= k && k <= at(own->last));
}

/// The parameters of each layer in the order in which backward writes their gradients, and behind
/// which kernel: [layer].
struct Written {
  std::int32_t parameter, kernel;
};
std::vector<std::vector<Written>> written_in_order(
    const std::vector<std::vector<GradientBinding>>& gradients) {
  std::vector<std::vector<Written>> written;
  for (const std::vector<GradientBinding>& layer : gradients) {
    written.emplace_back();
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(layer.size()); ++k) {
      const GradientBinding& kernel = layer[at(k)];
      if (kernel.result != nobody) written.back().push_back({kernel.result, k});
      for (const std::int32_t each : kernel.fills) written.back().push_back({each, k});
    }
  }
  return written;
}

/// Kernels of a forward pass, some of which a checkpoint runs again within backward: parameters are
/// multiplied with in the order that backward has the other way round.
void bind_forward(const Workload& workload, const std::vector<Written>& written,
                  const std::vector<Kernel>& kernels, bool recomputed,
                  std::vector<std::int32_t>& weights) {
  for (std::size_t i = written.size(); i-- > 0;) {
    const Parameter& parameter = workload.parameters[at(written[i].parameter)];
    const auto& own = recomputed ? parameter.backward : parameter.forward;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if ((kernels[k].recomputed == 1) != recomputed || weights[k] != nobody ||
          !may_read(kernels, k, parameter.elements(), own))
        continue;
      weights[k] = written[i].parameter;
      break;
    }
  }
}

/// The gradient of a product's input comes beside that of its weight: before it, or, where nothing
/// fits there, behind it.
void bind_backward(const Workload& workload, const std::vector<Written>& written,
                   const std::vector<Kernel>& kernels,
                   const std::vector<GradientBinding>& gradients,
                   std::vector<std::int32_t>& weights) {
  for (const Written& each : written) {
    const Parameter& parameter = workload.parameters[at(each.parameter)];
    const auto fits = [&](std::int32_t k) {
      return kernels[at(k)].recomputed != 1 && weights[at(k)] == nobody &&
             gradients[at(k)].result == nobody &&
             may_read(kernels, at(k), parameter.elements(), parameter.backward);
    };
    std::int32_t found = each.kernel;
    while (found >= 0 && !fits(found)) --found;
    if (found < 0) {
      found = each.kernel;
      while (found < static_cast<std::int32_t>(kernels.size()) && !fits(found)) ++found;
    }
    if (found < static_cast<std::int32_t>(kernels.size())) weights[at(found)] = each.parameter;
  }
}

}  // namespace

std::vector<std::vector<GradientBinding>> bind_gradients(const Workload& workload) {
  std::vector<std::vector<GradientBinding>> bindings;
  for (const Layer& layer : workload.layers) bindings.emplace_back(layer.backward.size());
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(workload.parameters.size()); ++p)
    if (!workload.parameters[at(p)].unused)
      bind_gradient(workload, p, bindings[at(workload.parameters[at(p)].layer)]);
  return bindings;
}

std::vector<WeightBindings> bind_weights(
    const Workload& workload, const std::vector<std::vector<GradientBinding>>& gradients) {
  const std::vector<std::vector<Written>> written = written_in_order(gradients);
  std::vector<WeightBindings> weights;
  for (std::size_t l = 0; l < workload.layers.size(); ++l) {
    const Layer& layer = workload.layers[l];
    WeightBindings& of = weights.emplace_back(
        WeightBindings{std::vector<std::int32_t>(layer.forward.size(), nobody),
                       std::vector<std::int32_t>(layer.backward.size(), nobody)});
    bind_forward(workload, written[l], layer.forward, false, of.forward);
    bind_forward(workload, written[l], layer.backward, true, of.backward);
    bind_backward(workload, written[l], layer.backward, gradients[l], of.backward);
  }
  return weights;
}

}  // namespace ddpsim
