#include "model/cost/costs.hpp"

namespace ddpsim {
namespace {

/// Does the time of this work depend on the rank's own computing speed?
bool is_computed(const Work& work, bool synchronous) {
  if (is_transfer(work.operation)) return false;
  if (is_collective(work.operation)) return false;
  return !(work.aside && synchronous);  // on a thread that communicates
}

}  // namespace

Costs slowed_down(const std::vector<Work>& works, bool synchronous, Costs costs, double factor) {
  for (std::size_t w = 0; w < costs.works.size(); ++w) {
    if (!is_computed(works[w], synchronous)) continue;
    costs.works[w].work = scaled(costs.works[w].work, factor);
    costs.works[w].last_launch = scaled(costs.works[w].last_launch, factor);
    costs.works[w].launch_rate /= static_cast<float>(factor);
  }
  return costs;
}

}  // namespace ddpsim
