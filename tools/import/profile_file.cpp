#include "tools/import/profile_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/version.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/text/seal.hpp"
#include "tools/study/known_joins.hpp"

namespace ddpsim {
namespace {

/// Who wrote the file. Such a file ends with the key `end` and a checksum
/// (scenarios/reader/text/seal.hpp).
const std::map<std::string, std::string> said{{"written_by", fmt::format("ddpsim {}", version)}};

}  // namespace

std::string workload_profile_yaml(const WorkloadProfile& profile, const std::string& remarks) {
  return sealed(document(workload_profile_map(), profile, remarks, said));
}

std::string link_profile_yaml(const Link& link, const std::string& remarks) {
  return sealed(document(link_map(), link, remarks, said));
}

std::string next_with_link(const Link& link, const std::vector<int>& unequal_nodes) {
  std::string nodes;
  if (!unequal_nodes.empty())
    nodes = fmt::format(" --ranks-per-node {}", fmt::join(unequal_nodes, ","));
  else if (joins_nodes(link))
    nodes = link.table_nodes > 1 ? fmt::format(" --nodes {}", link.table_nodes) : " --nodes N";
  return fmt::format("ddpsim run SCENARIO{} --link FILE", nodes);
}

}  // namespace ddpsim
