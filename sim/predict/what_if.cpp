#include "sim/predict/what_if.hpp"

#include "sim/predict/predict.hpp"

namespace ddpsim {
namespace {

void launch_for_free(StepCosts& costs) {
  const auto free = [](std::vector<KernelCost>& kernels) {
    for (KernelCost& kernel : kernels) kernel.host = {};
  };
  costs.launch = {};
  costs.unused_search = {};
  for (StepCosts::LayerCosts& layer : costs.layers) {
    free(layer.forward);
    free(layer.backward);
  }
  for (auto* kernels :
       {&costs.copy_in, &costs.copy_out, &costs.divide, &costs.accumulates, &costs.optimizer})
    free(*kernels);
  for (StepCosts::BufferCosts& group : costs.buffers) group.flatten.host = group.restore.host = {};
  costs.concatenate.host = costs.flat_divide.host = {};
}

}  // namespace

std::string_view name_of(Change change) {
  constexpr std::array<std::string_view, all_changes.size()> names{
      "link_twice_as_fast", "no_latency", "free_launch", "no_interference", "even_ranks"};
  return names[static_cast<std::size_t>(change)];
}

StepCosts with(StepCosts costs, Change change) {
  switch (change) {
    case Change::link_twice_as_fast:
      costs.collective.transfer_factor *= 0.5;
      break;
    case Change::no_latency:
      costs.collective.latency_factor = 0;
      break;
    case Change::free_launch:
      launch_for_free(costs);
      break;
    case Change::no_interference:
      costs.interference.strength = 0;
      break;
    case Change::even_ranks:
      costs.slowest_rank = 1;
      break;
  }
  return costs;
}

std::vector<WhatIf> what_if(const StepCosts& costs, const Training& training) {
  std::vector<WhatIf> all;
  for (const Change change : all_changes) {
    if (change == Change::even_ranks && costs.slowest_rank <= 1) continue;
    all.push_back({change, predict(with(costs, change), training).metrics.step});
  }
  return all;
}

}  // namespace ddpsim
