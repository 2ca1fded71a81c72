#include "tools/report/reports/kept_links.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/study/cluster_layers.hpp"
#include "tools/study/known_joins.hpp"

namespace ddpsim {
namespace {

/// The cluster without the setting of its device; none: nobody has written one.
std::optional<ClusterLayers> layers_before(const Scenario& scenario,
                                           std::vector<Setting> settings) {
  std::erase_if(settings,
                [](const Setting& setting) { return touches(setting, "cluster.device"); });
  return cluster_layers(scenario, settings);
}

/// The first of the layers that has the key, from the scenario's own on; null: none has.
const Entry* layer_with(const ClusterLayers& layers, std::string_view key) {
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const Entry& layer) { return YamlMap(layer.yaml).has(key); });
  return found == layers.end() ? nullptr : &*found;
}

/// Is such a device joined by such a link, as far as is known? `before`: the device that was.
bool goes_with(const Link& link, const Device& device, const Device& before) {
  const bool hosts = device.compute_capability == 0 && before.compute_capability == 0;
  if (device.name == before.name && device.name != "inline") return true;
  if (link.kind == LinkKind::plain) return hosts;  // of CPUs: a network that has no name
  if (!link.all_reduce.empty()) return false;      // measured with the other device
  return is_known_to_join(link, device);
}

std::string kept_links(const Scenario& scenario, const ClusterLayers& layers) {
  const CalibratedCluster& cluster = scenario.cluster;
  const Entry* inside = layer_with(layers, "intra_node");
  const Entry* named = layer_with(layers, "device");
  if (inside == nullptr || named == nullptr) return "";
  const Device before = read_device(*YamlMap(named->yaml).find("device"));
  if (goes_with(cluster.intra_node, cluster.device, before)) return "";
  const bool of_scenario = inside->name == "inline";
  std::string stays =
      fmt::format("intra_node stays {}", shown_name(cluster.intra_node.name, "link"));
  if (const Entry* between = layer_with(layers, "inter_node");
      cluster.nodes > 1 && between == inside && !of_scenario)
    stays += fmt::format(" and inter_node {}", shown_name(cluster.inter_node.name, "link"));
  return fmt::format(
      "{}, as {} has it: setting the device changes nothing else, and no such device is known to "
      "be joined by that link; --cluster NAME (or --vary cluster=A,B) takes a whole system with "
      "its links, --link NAME (cluster.intra_node) another link",
      stays, of_scenario ? "the scenario" : inside->name);
}

}  // namespace

std::string kept_links_note(const Scenario& scenario, const std::vector<Setting>& settings) {
  const bool said_link = touches(settings, "cluster.intra_node");
  if (scenario.cluster.ranks_per_node == 1 || said_link || !is_set(settings, "cluster.device"))
    return "";
  try {
    const auto layers = layers_before(scenario, settings);
    if (!layers) return "";
    // A cluster that the command itself writes out has the links that its user wanted.
    const bool written_out =
        is_set(settings, "cluster") && YamlMap(layers->front().yaml).has("intra_node");
    return written_out ? "" : kept_links(scenario, *layers);
  } catch (const InputError&) {  // without the device it is no cluster
    return "";
  }
}

}  // namespace ddpsim
