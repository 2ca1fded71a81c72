#include "tools/report/reports/full_nodes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tools/study/cluster_layers.hpp"

namespace ddpsim {

std::string full_nodes_note(const Scenario& scenario, const std::vector<Setting>& settings) {
  const CalibratedCluster& cluster = scenario.cluster;
  const int most = cluster.ranks_per_node.largest();
  if (most == 1) return "";
  try {
    const auto layers = cluster_layers(scenario, settings);
    if (!layers) return "";
    for (auto layer = layers->begin() + 1; layer < layers->end(); ++layer) {
      const auto given = YamlMap(layer->yaml).find("ranks_per_node");
      if (!given) continue;
      const auto places = parse_integer(given->scalar());
      if (!places || most <= *places) return "";
      return fmt::format(
          "{} has {} {} in a node, and here a node has {} ranks: no such machine is known, and its "
          "links and NICs are taken as they are; more machines are more nodes (--nodes, "
          "cluster.nodes)",
          layer->name, *places, cluster.device.name, most);
    }
  } catch (const InputError&) {  // a profile's settings may need what only its reader adds
  }
  return "";
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
