#include "scenarios/reader/cluster_shape.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw std::invalid_argument(problem);
}

/// `whole` in so many equal parts.
int part_of(int ranks, int parts, const char* written) {
  if (ranks % parts != 0)
    refuse(
        fmt::format("{} ranks do not divide by {} = {}: write nodes and ranks_per_node, whose "
                    "product it is, and leave ranks out",
                    ranks, written, parts));
  return ranks / parts;
}

bool is_set(const std::vector<Override>& settings, std::string_view key) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Override& setting) { return setting.first == key; });
}

/// Takes out of the cluster's mapping what settings of its size replace.
void make_way(Yaml& scenario, const std::vector<Override>& settings) {
  if (!is_set(settings, "cluster.ranks")) {
    if (is_set(settings, "cluster.nodes") || is_set(settings, "cluster.ranks_per_node"))
      scenario.remove({"cluster", "ranks"});
    return;
  }
  const auto cluster = YamlMap(scenario).find("cluster");
  if (!cluster || !cluster->is_map()) return;
  const YamlMap keys(*cluster);
  const bool links_of_both_kinds = keys.has("intra_node") && keys.has("inter_node");
  // Machines stay as they are; how many there are changes.
  const bool machines = keys.has("system") || (links_of_both_kinds && keys.has("ranks_per_node"));
  if ((machines || !links_of_both_kinds) && !is_set(settings, "cluster.nodes"))
    scenario.remove({"cluster", "nodes"});
  if (!machines && !links_of_both_kinds && !is_set(settings, "cluster.ranks_per_node"))
    scenario.remove({"cluster", "ranks_per_node"});
}

}  // namespace

NodesAndRanks divided(int ranks, const ClusterShape& shape) {
  if (shape.nodes && shape.ranks_per_node) {
    if (static_cast<std::int64_t>(*shape.nodes) * *shape.ranks_per_node != ranks)
      refuse(
          fmt::format("{} ranks are not nodes x ranks_per_node = {} x {}: leave one of the "
                      "three out",
                      ranks, *shape.nodes, *shape.ranks_per_node));
    return {*shape.nodes, *shape.ranks_per_node};
  }
  if (shape.nodes) return {*shape.nodes, part_of(ranks, *shape.nodes, "nodes")};
  if (shape.ranks_per_node)
    return {part_of(ranks, *shape.ranks_per_node, "ranks_per_node"), *shape.ranks_per_node};
  if (shape.system_ranks_per_node) {
    const int whole = *shape.system_ranks_per_node;
    if (ranks <= whole) return {1, ranks};
    return {part_of(ranks, whole, "the system's ranks_per_node"), whole};
  }
  if (ranks > 1 && shape.intra_node && shape.inter_node)
    refuse(
        fmt::format("{} ranks may be nodes of any size, as there are both intra_node and "
                    "inter_node: write nodes or ranks_per_node as well",
                    ranks));
  return shape.inter_node ? NodesAndRanks{ranks, 1} : NodesAndRanks{1, ranks};
}

void apply_settings(Yaml& scenario, const std::vector<Override>& settings) {
  std::vector<Override> whole, rest;
  for (const Override& setting : settings)
    (setting.first == "cluster" ? whole : rest).push_back(setting);
  scenario.apply(whole);
  scenario.wrap("cluster", "system");
  make_way(scenario, settings);
  scenario.apply(rest);
}

}  // namespace ddpsim
