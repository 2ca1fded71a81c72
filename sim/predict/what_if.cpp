#include "sim/predict/what_if.hpp"

#include "sim/predict/predict.hpp"

namespace ddpsim {
std::string_view name_of(Change change) {
  constexpr std::array<std::string_view, all_changes.size()> names{
      "link_twice_as_fast", "no_latency", "free_launch",
      "no_interference",    "even_ranks", "no_exceptions"};
  return names[static_cast<std::size_t>(change)];
}

CostModel with(CostModel costs, Change change) {
  switch (change) {
    case Change::link_twice_as_fast:
      costs.double_links();
      break;
    case Change::no_latency:
      costs.collective.change.latency = 0;
      break;
    case Change::free_launch:
      costs.launch = {};
      costs.free_launch = true;
      break;
    case Change::no_interference:
      costs.interference.strength = 0;
      break;
    case Change::even_ranks:
      costs.make_ranks_even();
      break;
    case Change::no_exceptions:
      costs.take_out_exceptions();
      break;
  }
  return costs;
}

std::vector<WhatIf> what_if(const StepModel& model, const Training& training) {
  const auto planned = std::make_shared<const PlannedStep>(plan_step(model.works, training));
  const CostModel& costs = model.costs;
  std::vector<WhatIf> all;
  for (const Change change : all_changes) {
    if (change == Change::even_ranks && !costs.has_uneven_ranks()) continue;
    if (change == Change::no_exceptions && !costs.has_exceptions()) continue;
    all.push_back({change, predict(with(costs, change), training, planned).metrics.step});
  }
  return all;
}

}  // namespace ddpsim
