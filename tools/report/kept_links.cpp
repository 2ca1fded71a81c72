#include "tools/report/kept_links.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "model/cost/collective_ports.hpp"
#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/cluster_shape.hpp"
#include "scenarios/reader/device_reader.hpp"
#include "scenarios/reader/input_error.hpp"
#include "tools/report/cluster_report.hpp"

namespace ddpsim {
namespace {

/// The cluster's mapping, then the ready cluster that it names and those that this one is based on.
using ClusterLayers = std::vector<Entry>;

/// The cluster without the setting of its device; none: nobody has written one.
std::optional<ClusterLayers> layers_before(const Scenario& scenario,
                                           std::vector<Setting> settings) {
  std::erase_if(settings,
                [](const Setting& setting) { return touches(setting, "cluster.device"); });
  // What the file says does not matter beside a whole cluster; it may be a large model's.
  const bool whole = is_set(settings, "cluster");
  if (!whole && !unreadable(scenario.file).empty()) return std::nullopt;
  Yaml root = whole ? Yaml::of_nothing() : Yaml::load(scenario.file);
  apply_settings(root, settings);
  const auto cluster = YamlMap(root).find("cluster");
  if (!cluster) return std::nullopt;
  return entry_with_bases(*cluster, cluster_entries, "system");
}

/// The first of the layers that has the key, from the scenario's own on; null: none has.
const Entry* layer_with(const ClusterLayers& layers, std::string_view key) {
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const Entry& layer) { return YamlMap(layer.yaml).has(key); });
  return found == layers.end() ? nullptr : &*found;
}

/// Bytes per second of the NVLink that GPUs of this capability have: of a GPU with all its links,
/// or of the bridge between two cards. 0: none is known. Source: the catalogue's links.
double usual_nvlink(int capability) {
  constexpr std::pair<int, double> usual[] = {{70, 150e9},   {75, 50e9},  {80, 300e9},
                                              {86, 56.25e9}, {90, 450e9}, {100, 900e9}};
  for (const auto& [of, rate] : usual)
    if (of == capability) return rate;
  return 0;
}

/// Is such a device joined by such a link, as far as is known? `before`: the device that was.
bool goes_with(const Link& link, const Device& device, const Device& before) {
  const bool hosts = device.compute_capability == 0 && before.compute_capability == 0;
  const double rate = link.bandwidth.bytes_per_second;
  if (device.name == before.name && device.name != "inline") return true;
  if (link.kind == LinkKind::plain && hosts) return true;  // of CPUs: a network that has no name
  if (!link.all_reduce.empty()) return false;              // measured with the other device
  switch (link.kind) {
    case LinkKind::ethernet:
    case LinkKind::infiniband:
      return true;
    case LinkKind::plain:
      return false;
    case LinkKind::pcie:
      return device.compute_capability > 0 && rate <= pcie_line_rate(device.compute_capability);
    case LinkKind::nvlink:
      return !lacks_nvlink(device.name) && rate == usual_nvlink(device.compute_capability);
  }
  return true;
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
