#include "sim/predict/what_if.hpp"

#include "model/ddp/build_schedule.hpp"
#include "sim/predict/predict.hpp"

namespace ddpsim {
std::string_view name_of(Change change) {
  constexpr std::array<std::string_view, all_changes.size()> names{
      "link_twice_as_fast", "no_latency", "free_launch", "no_interference", "even_ranks"};
  return names[static_cast<std::size_t>(change)];
}

CostModel with(CostModel costs, Change change) {
  switch (change) {
    case Change::link_twice_as_fast:
      costs.collective.transfer_factor *= 0.5;
      break;
    case Change::no_latency:
      costs.collective.latency_factor = 0;
      break;
    case Change::free_launch:
      costs.launch = {};
      costs.free_launch = true;
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

std::vector<WhatIf> what_if(const StepModel& model, const Training& training) {
  const Schedule schedule = build_schedule(model.works, training);
  std::vector<WhatIf> all;
  for (const Change change : all_changes) {
    if (change == Change::even_ranks && model.costs.slowest_rank <= 1) continue;
    all.push_back({change, predict(with(model.costs, change), training, schedule).metrics.step});
  }
  return all;
}

}  // namespace ddpsim
