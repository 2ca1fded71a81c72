#include "model/workload/checkpoints.hpp"

#include <algorithm>
#include <utility>

#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// What a layer's modules take, as one that keeps `input`.
ModuleMemory of_one_module(const std::vector<ModuleMemory>& modules, Bytes input) {
  ModuleMemory one;
  Bytes kept, in_backward;
  one.kept = input;
  for (const ModuleMemory& each : modules) {
    one.forward_working = std::max(one.forward_working, each.kept + each.forward_working);
    in_backward = std::max(in_backward, each.backward_working);
    kept += each.kept;
    one.gradients += each.gradients;
  }
  one.backward_working = kept + in_backward;
  return one;
}

}  // namespace

void checkpoint_last_layer(Workload& workload, Bytes input) {
  Layer& layer = workload.layers.back();
  const auto number = static_cast<int>(workload.layers.size()) - 1;
  std::vector<Kernel> backward = layer.forward;
  for (Kernel& kernel : backward) {
    kernel.name += ".again";
    kernel.recomputed = 1;
  }
  const auto again = static_cast<int>(backward.size());
  std::move(layer.backward.begin(), layer.backward.end(), std::back_inserter(backward));
  layer.backward = std::move(backward);
  for (Parameter& parameter : workload.parameters)
    if (parameter.layer == number) parameter.ready_after += again;
  if (!layer.memory.empty()) layer.memory = {of_one_module(layer.memory, input)};
}

}  // namespace ddpsim
