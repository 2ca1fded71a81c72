#pragma once

#include <vector>

#include "model/cost/costs.hpp"
#include "model/timeline/timeline.hpp"

namespace ddpsim {

/// What costs tell of works besides how long they take: an entry for each.
inline std::vector<Timeline::Detail> details_of(const Costs& costs) {
  std::vector<Timeline::Detail> details;
  details.reserve(costs.works.size());
  for (const WorkCost& cost : costs.works)
    details.push_back(
        {cost.latency, cost.filling, cost.work, cost.last_launch, cost.choice, cost.take_up});
  return details;
}

}  // namespace ddpsim
