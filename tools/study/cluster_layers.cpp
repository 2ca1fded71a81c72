#include "tools/study/cluster_layers.hpp"

#include "scenarios/reader/scenario/scenario_settings.hpp"

namespace ddpsim {

std::optional<ClusterLayers> cluster_layers(const Scenario& scenario,
                                            const std::vector<Setting>& settings) {
  // What the file says does not matter beside a whole cluster; it may be a large model's.
  const bool whole = is_set(settings, "cluster");
  if (!whole && !unreadable(scenario.file).empty()) return std::nullopt;
  Yaml root = whole ? Yaml::of_nothing(scenario.file) : Yaml::load(scenario.file);
  apply_settings(root, settings);
  const auto cluster = YamlMap(root).find("cluster");
  if (!cluster) return std::nullopt;
  return entry_with_bases(*cluster, cluster_entries, "system");
}

std::optional<Yaml> device_in(const ClusterLayers& layers) {
  std::optional<Yaml> device;
  for (const Entry& layer : layers) {
    const auto written = YamlMap(layer.yaml).find("device");
    if (!written) continue;
    if (device && !written->is_map())
      device->apply({{"base", written->scalar()}});
    else if (!device)
      device = written;
    if (!device->is_map() || YamlMap(*device).has("base")) break;
  }
  return device;
}

}  // namespace ddpsim
