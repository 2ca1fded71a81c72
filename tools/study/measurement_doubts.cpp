#include "tools/study/measurement_doubts.hpp"

#include <fmt/format.h>

namespace ddpsim {

std::vector<std::string> measurement_doubts(const Scenario& scenario) {
  std::vector<std::string> doubts;
  const auto add = [&](const std::string& of, const std::vector<std::string>& found) {
    for (const std::string& doubt : found)
      doubts.push_back(fmt::format("{} is doubtful: {}", of, doubt));
  };
  const CalibratedCluster& cluster = scenario.cluster;
  add(fmt::format("the profile of {}", scenario.workload.name), scenario.workload.doubts);
  if (cluster.calibration) add("the calibration", cluster.calibration->doubts);
  if (cluster.ranks_per_node.largest() > 1)
    add(fmt::format("the table of {}", cluster.intra_node.name), cluster.intra_node.doubts);
  if (cluster.nodes > 1)
    add(fmt::format("the table of {}", cluster.inter_node.name), cluster.inter_node.doubts);
  return doubts;
}

}  // namespace ddpsim
