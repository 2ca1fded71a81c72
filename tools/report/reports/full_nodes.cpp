#include "tools/report/reports/full_nodes.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tools/study/cluster_layers.hpp"

namespace ddpsim {

namespace {

constexpr int most_of_a_machine = 16;  // GPUs on one NVLink, of an HGX-2; racks have more

/// How many devices a node of the ready cluster has that the cluster names, and that one's name.
struct Places {
  int count = 0;
  std::string name;
};
std::optional<Places> places_of_node(const Scenario& scenario,
                                     const std::vector<Setting>& settings) {
  try {
    const auto layers = cluster_layers(scenario, settings);
    if (!layers) return std::nullopt;
    for (auto layer = layers->begin() + 1; layer < layers->end(); ++layer) {
      const auto given = YamlMap(layer->yaml).find("ranks_per_node");
      if (!given) continue;
      const auto count = parse_integer(given->scalar());
      return count ? std::optional(Places{static_cast<int>(*count), layer->name}) : std::nullopt;
    }
  } catch (const InputError&) {  // a profile's settings may need what only its reader adds
  }
  return std::nullopt;
}

}  // namespace

std::string full_nodes_note(const Scenario& scenario, const std::vector<Setting>& settings) {
  const CalibratedCluster& cluster = scenario.cluster;
  const int most = cluster.ranks_per_node.largest();
  if (most == 1) return "";
  const auto places = places_of_node(scenario, settings);
  if (!places || most <= places->count) return "";
  return fmt::format(
      "{} has {} {} in a node, and here a node has {} ranks: no such machine is known, and its "
      "links and NICs are taken as they are; more machines are more nodes (--nodes, "
      "cluster.nodes, or a longer list in cluster.ranks_per_node)",
      places->name, places->count, cluster.device.name, most);
}

std::string split_rack_note(const Scenario& scenario, const std::vector<Setting>& settings) {
  const CalibratedCluster& cluster = scenario.cluster;
  if (cluster.nodes == 1 || cluster.intra_node.kind != LinkKind::nvlink) return "";
  const auto places = places_of_node(scenario, settings);
  if (!places || places->count <= most_of_a_machine || cluster.ranks() > places->count) return "";
  return fmt::format(
      "{0} of the {1} ranks of a node of {2}, which are one NVLink domain, are used in each of {3} "
      "nodes, and all-reduces between these are predicted over the {4} NICs of each: for {5} ranks "
      "of one NVLink domain write --nodes 1 --ranks-per-node {5}",
      to_string(cluster.ranks_per_node), places->count, places->name, cluster.nodes,
      nics_per_node(cluster), cluster.ranks());
}

std::string used_nodes_note(const Scenario& scenario, const std::vector<Setting>& settings) {
  const int used = scenario.cluster.nodes;
  if (!is_set(settings, "cluster.ranks") || is_set(settings, "cluster.nodes")) return "";
  try {
    const auto layers = cluster_layers(scenario, settings);
    if (!layers || YamlMap(layers->front().yaml).has("nodes")) return "";
    for (const Entry& layer : *layers) {
      const auto given = YamlMap(layer.yaml).find("nodes");
      if (!given) continue;
      const auto there = parse_integer(given->scalar());
      if (!there || *there == used) return "";
      return *there < used ? fmt::format("{} has {} node{}, and these ranks fill {}", layer.name,
                                         *there, *there == 1 ? "" : "s", used)
                           : fmt::format(
                                 "{} of the {} nodes of {} {} used, as these ranks fill no more: "
                                 "--nodes N (cluster.nodes) spreads them over N",
                                 used, *there, layer.name, used == 1 ? "is" : "are");
    }
  } catch (const InputError&) {  // a profile's settings may need what only its reader adds
  }
  return "";
}

}  // namespace ddpsim
