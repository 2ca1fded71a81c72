#include "model/workload/checkpoints.hpp"

#include <algorithm>
#include <utility>

#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// What a layer's modules take, as one that keeps its input and so many bytes of results.
ModuleMemory of_one_module(const std::vector<ModuleMemory>& modules, Bytes input, Bytes results) {
  ModuleMemory one;
  Bytes kept, in_backward;
  one.kept = input + results;
  for (const ModuleMemory& each : modules) {
    one.forward_working = std::max(one.forward_working, each.kept + each.forward_working);
    in_backward = std::max(in_backward, each.backward_working);
    kept += each.kept;
    one.gradients += each.gradients;
  }
  one.backward_working = kept - std::min(kept, results) + in_backward;
  return one;
}

/// The backward pass of the last layer begins with those kernels of its forward pass, which take
/// its parameters, too.
void run_again(Workload& workload, std::vector<Kernel> kernels) {
  Layer& layer = workload.layers.back();
  const auto number = static_cast<int>(workload.layers.size()) - 1;
  for (Kernel& kernel : kernels) {
    kernel.name += ".again";
    kernel.recomputed = 1;
  }
  const auto again = static_cast<int>(kernels.size());
  std::move(layer.backward.begin(), layer.backward.end(), std::back_inserter(kernels));
  layer.backward = std::move(kernels);
  for (Parameter& parameter : workload.parameters)
    if (parameter.layer == number) {
      parameter.ready_after += again;
      if (parameter.backward) parameter.backward = {0, parameter.backward->last + again};
    }
}

bool is_attention(const Kernel& kernel) {
  return std::ranges::any_of(kernel.parts, [](const KernelPart& part) {
    return std::holds_alternative<AttentionOperation>(part.kernel.shape);
  });
}

}  // namespace

void checkpoint_last_layer(Workload& workload, Bytes input) {
  Layer& layer = workload.layers.back();
  run_again(workload, layer.forward);
  if (!layer.memory.empty()) layer.memory = {of_one_module(layer.memory, input, Bytes{})};
}

void checkpoint_operations_of_last_layer(Workload& workload, Bytes input, DType type,
                                         Bytes attention) {
  Layer& layer = workload.layers.back();
  std::vector<Kernel> again;
  Bytes results;
  int products = 0;
  for (const Kernel& kernel : layer.forward) {
    if (is_attention(kernel)) {
      results += attention;
    } else if (kernel.gemm && kernel.gemm->batch == 1 && ++products % 2 == 1) {
      results += kernel.gemm->m * kernel.gemm->n * size_of(type);
    } else {
      again.push_back(kernel);
    }
  }
  run_again(workload, std::move(again));
  if (!layer.memory.empty()) layer.memory = {of_one_module(layer.memory, input, results)};
}

}  // namespace ddpsim
