#include "tools/report/reports/kept_price.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/study/cluster_layers.hpp"

namespace ddpsim {
namespace {

/// The value of the first layer that has the key, from the cluster's own mapping on.
std::optional<Yaml> first_of(const ClusterLayers& layers, std::string_view key) {
  for (const Entry& layer : layers)
    if (const auto value = YamlMap(layer.yaml).find(key)) return value;
  return std::nullopt;
}

/// `before`: the cluster without the settings of its device.
std::string kept_price(const Scenario& scenario, const ClusterLayers& before, bool other_system) {
  const bool written_out = YamlMap(before.front().yaml).has("price");
  const auto device = first_of(before, "device");
  // The price of a ready cluster goes when another takes its place.
  if (!device || !first_of(before, "price") || (other_system && !written_out)) return "";
  const Device had = read_device(*device);
  const Device& has = scenario.cluster.device;
  if (had.name == has.name) return "";
  return fmt::format(
      "cluster.price, {:g} {} an hour, was given for {} and is taken for {}: --set "
      "cluster.price=... says another",
      scenario.price->per_hour, scenario.price->currency, shown_name(had.name, "device"),
      shown_name(has.name, "device"));
}

}  // namespace

std::string kept_price_note(const Scenario& scenario, const std::vector<Setting>& settings) {
  const bool other_system = is_set(settings, "cluster.system");
  if (!scenario.price || is_set(settings, "cluster.price") ||
      (!is_set(settings, "cluster.device") && !other_system))
    return "";
  std::vector<Setting> others = settings;
  std::erase_if(others, [](const Setting& setting) {
    return touches(setting, "cluster.device") || touches(setting, "cluster.system");
  });
  try {
    const auto before = cluster_layers(scenario, others);
    return before ? kept_price(scenario, *before, other_system) : "";
  } catch (const InputError&) {  // without the device it is no cluster
    return "";
  }
}

}  // namespace ddpsim
