#include "model/workload/freeze.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/base/index.hpp"
#include "model/workload/kernel_bindings.hpp"

namespace ddpsim {
namespace {

/// The first layer that trains anything; what comes before it runs no backward pass.
std::size_t first_trained_layer(const Workload& workload, const std::vector<bool>& frozen) {
  std::size_t first = workload.layers.size();
  for (std::size_t p = 0; p < workload.parameters.size(); ++p)
    if (!frozen[p] && !workload.parameters[p].unused)
      first = std::min(first, at(workload.parameters[p].layer));
  if (first == workload.layers.size())
    throw std::invalid_argument("all parameters are frozen, and nothing is trained");
  return first;
}

/// Where kernels of a backward pass are once some are gone; none: none of them is left.
std::optional<KernelRange> left_of(const std::optional<KernelRange>& range,
                                   const std::vector<bool>& gone) {
  if (!range) return std::nullopt;
  const auto left_before = [&](int kernel) {
    return static_cast<int>(std::count(gone.begin(), gone.begin() + kernel, false));
  };
  const KernelRange left{left_before(range->first), left_before(range->last + 1) - 1};
  return left.first <= left.last ? std::optional(left) : std::nullopt;
}

/// [old kernel of a backward pass] its place once some are gone; of one that is gone the place of
/// the last one before it.
std::vector<int> remove(std::vector<Kernel>& kernels, const std::vector<bool>& gone) {
  std::vector<int> places;
  std::vector<Kernel> left;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (!gone[k]) left.push_back(std::move(kernels[k]));
    places.push_back(std::max(0, static_cast<int>(left.size()) - 1));
  }
  kernels = std::move(left);
  return places;
}

/// A layer that runs forward alone keeps nothing.
void run_forward_alone(Layer& layer) {
  layer.backward.clear();
  for (ModuleMemory& memory : layer.memory) {
    memory.kept = memory.backward_working = memory.gradients = Bytes{};
    memory.backward_peak.reset();
    memory.first_backward = 0;
  }
}

}  // namespace

Workload freeze(Workload workload, const std::vector<bool>& which) {
  const std::size_t first = first_trained_layer(workload, which);
  const auto bindings = bind_gradients(workload);
  std::vector<std::vector<int>> places(workload.layers.size());
  std::vector<std::vector<bool>> gone(workload.layers.size());
  for (std::size_t l = 0; l < workload.layers.size(); ++l) {
    Layer& layer = workload.layers[l];
    if (l < first) {
      gone[l].resize(layer.backward.size(), true);
      run_forward_alone(layer);
      continue;
    }
    for (const GradientBinding& each : bindings[l])
      gone[l].push_back(each.result != nobody && which[at(each.result)]);
    places[l] = remove(layer.backward, gone[l]);
    for (ModuleMemory& memory : layer.memory)
      if (!places[l].empty())
        memory.first_backward =
            places[l][std::min(at(memory.first_backward), places[l].size() - 1)];
  }
  std::vector<Parameter> trained;
  for (std::size_t p = 0; p < workload.parameters.size(); ++p) {
    Parameter& parameter = workload.parameters[p];
    parameter.backward = left_of(parameter.backward, gone[at(parameter.layer)]);
    if (which[p]) {
      workload.frozen += parameter.size();
      workload.frozen_parameters.push_back({parameter.name, parameter.shape, parameter.dtype,
                                            parameter.layer, parameter.forward,
                                            parameter.backward});
      continue;
    }
    if (!parameter.unused)
      parameter.ready_after = places[at(parameter.layer)][at(parameter.ready_after)];
    trained.push_back(std::move(parameter));
  }
  workload.parameters = std::move(trained);
  std::erase_if(workload.collectives,
                [&](const OwnCollective& each) { return each.backward && at(each.layer) < first; });
  for (OwnCollective& each : workload.collectives)
    if (each.backward) each.after = places[at(each.layer)][at(each.after)];
  return workload;
}

}  // namespace ddpsim
