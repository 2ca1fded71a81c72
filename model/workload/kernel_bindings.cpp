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

/// `own`: the kernels of its module, if they are known.
void bind_weight(const Workload& workload, std::int32_t index, const std::vector<Kernel>& kernels,
                 const std::optional<KernelRange>& own,
                 const std::vector<GradientBinding>* gradients,
                 std::vector<std::int32_t>& weights) {
  const std::int64_t elements = workload.parameters[at(index)].elements();
  bool is_read_again = false;  // by a checkpoint's forward kernel
  const std::size_t begin = own ? at(own->first) : 0;
  const std::size_t end = own ? at(own->last) + 1 : kernels.size();
  for (std::size_t k = begin; k < end; ++k) {
    const auto& gemm = kernels[k].gemm;
    if (!gemm || gemm->batch != 1 || gemm->k * gemm->n != elements) continue;
    if (weights[k] != nobody || (gradients != nullptr && (*gradients)[k].result != nobody))
      continue;
    const bool is_again = kernels[k].recomputed == 1;
    if (is_again && is_read_again) continue;
    weights[k] = index;
    if (!is_again) return;
    is_read_again = true;  // and the data gradient reads it too
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
  std::vector<WeightBindings> weights;
  for (const Layer& layer : workload.layers)
    weights.push_back({std::vector<std::int32_t>(layer.forward.size(), nobody),
                       std::vector<std::int32_t>(layer.backward.size(), nobody)});
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(workload.parameters.size()); ++p) {
    const auto number = at(workload.parameters[at(p)].layer);
    const Layer& layer = workload.layers[number];
    const Parameter& parameter = workload.parameters[at(p)];
    bind_weight(workload, p, layer.forward, parameter.forward, nullptr, weights[number].forward);
    bind_weight(workload, p, layer.backward, parameter.backward, &gradients[number],
                weights[number].backward);
  }
  return weights;
}

}  // namespace ddpsim
