#include "tools/study/table_ranks.hpp"

#include <vector>

#include <fmt/format.h>

#include "model/cluster/deciding_link.hpp"
#include "model/cost/collective.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

int ranks_of_table(const CalibratedCluster& cluster) {
  if (CollectiveLaw(cluster).name() != std::string("table")) return 0;
  const bool calibrated = cluster.calibration && !cluster.calibration->all_reduce.empty();
  const int said = calibrated ? cluster.calibration->ranks : deciding_link(cluster).table_ranks;
  return said > 0 ? said : cluster.ranks();
}

std::string scaled_table_note(int measured, const std::set<int>& ranks) {
  std::vector<std::string> others;
  for (const int each : ranks)
    if (each != measured) others.push_back(fmt::format("{}", each));
  if (measured == 0 || others.empty()) return "";
  return fmt::format(
      "all-reduces were measured with {} ranks: for {} they are scaled by the law of a ring, which "
      "nobody measured here",
      measured, enumerated(others));
}

}  // namespace ddpsim
