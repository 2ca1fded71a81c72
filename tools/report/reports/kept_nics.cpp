#include "tools/report/reports/kept_nics.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/study/cluster_layers.hpp"

namespace ddpsim {
namespace {

/// The first layer from `begin` on that has a network.
ClusterLayers::const_iterator with_network(ClusterLayers::const_iterator begin,
                                           ClusterLayers::const_iterator end) {
  return std::find_if(begin, end,
                      [](const Entry& layer) { return YamlMap(layer.yaml).has("inter_node"); });
}

Link network_of(const Entry& layer) {
  return read_link(*YamlMap(layer.yaml).find("inter_node"));
}

/// What a user writes for the network with so many NICs.
std::string with_nics(const Entry& layer, int nics) {
  const Yaml network = *YamlMap(layer.yaml).find("inter_node");
  if (network.is_map()) return fmt::format("cluster.inter_node.nics={}", nics);
  return fmt::format("'cluster.inter_node={{base: {}, nics: {}}}'", network.scalar(), nics);
}

std::string kept_nics(const Cluster& cluster, const ClusterLayers& layers) {
  const auto now = with_network(layers.begin(), layers.end());
  if (now == layers.end()) return "";
  const auto before = with_network(now + 1, layers.end());
  if (before == layers.end()) return "";
  const Link network = network_of(*now), replaced = network_of(*before);
  if (network.nics > 0 || replaced.nics == 0 || network.kind == replaced.kind ||
      !network.all_reduce.empty())
    return "";
  Cluster alone = cluster;
  alone.inter_node.nics = 0;
  const int own = nics_per_node(alone);
  if (own == replaced.nics) return "";
  return fmt::format(
      "{} is taken with the {} NICs that a node of {} has, and by itself has {}: --set {} (or "
      "--vary) takes {}",
      shown_name(cluster.inter_node.name, "link"), replaced.nics, before->name,
      own == 1 ? "one" : fmt::format("{}", own), with_nics(*now, own), own == 1 ? "one" : "these");
}

}  // namespace

std::string kept_nics_note(const Scenario& scenario, const std::vector<Setting>& settings) {
  if (scenario.cluster.nodes == 1 || !is_set(settings, "cluster.inter_node")) return "";
  try {
    const auto layers = cluster_layers(scenario, settings);
    return layers ? kept_nics(scenario.cluster, *layers) : "";
  } catch (const InputError&) {  // a mapping that holds no link by itself
    return "";
  }
}

}  // namespace ddpsim
