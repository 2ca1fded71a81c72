#include "tools/study/known_joins.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "model/cluster/nvlink.hpp"
#include "model/cost/collective_ports.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"

namespace ddpsim {
namespace {

bool is_nvlink_of(const Device& device, const Link& link) {
  if (device.compute_capability == 0 || lacks_nvlink(device.name)) return false;
  const double usual = nvlink_rate(device.compute_capability).bytes_per_second;
  const std::vector<std::string> names = catalogue_names(link_entries);
  const std::string name = without_mark(link.name);
  if (std::find(names.begin(), names.end(), name) == names.end())
    return link.bandwidth.bytes_per_second <= usual;
  return read_link(Yaml::of_text(name)).bandwidth.bytes_per_second == usual;
}

}  // namespace

bool is_known_to_join(const Link& link, const Device& device) {
  switch (link.kind) {
    case LinkKind::plain:
    case LinkKind::ethernet:
    case LinkKind::infiniband:
      return true;
    case LinkKind::pcie:
      return device.compute_capability > 0 &&
             link.bandwidth.bytes_per_second <= pcie_line_rate(device.compute_capability);
    case LinkKind::nvlink:
      return is_nvlink_of(device, link);
  }
  return true;
}

bool joins_nodes(const Link& link) {
  if (link.table_nodes > 1 && !link.all_reduce.empty()) return true;
  const bool network = link.kind == LinkKind::ethernet || link.kind == LinkKind::infiniband;
  return network && link.all_reduce.empty();
}

}  // namespace ddpsim
