#include "tools/command/link_flags.hpp"

#include <fmt/format.h>

#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/study/known_joins.hpp"

namespace ddpsim {

std::array<std::string, 2> links_of(const std::vector<std::string>& given) {
  std::array<std::string, 2> links;
  for (const std::string& name : given) {
    const bool between = joins_nodes(
        read_link(Yaml::of_setting({"link", name, fmt::format("--link {}", shown(name))})));
    std::string& place = links[between ? 1 : 0];
    if (!place.empty())
      throw InputError(fmt::format("--link {} and --link {} both join {}: give one of each kind",
                                   place, name, between ? "nodes" : "the ranks of a node"));
    place = name;
  }
  return links;
}

}  // namespace ddpsim
