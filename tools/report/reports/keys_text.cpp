#include "tools/report/reports/keys_text.hpp"

#include <algorithm>

#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"

namespace ddpsim {
namespace {

/// A part of a scenario that settings made, and the settings below it, whose keys begin here.
struct Place {
  const YamlMap& map;
  std::vector<Setting> settings;
};

/// Those below that key, without it.
std::vector<Setting> settings_below(const Place& place, const std::string& key) {
  std::vector<Setting> below;
  for (const Setting& each : place.settings)
    if (each.key.starts_with(key + "."))
      below.emplace_back(each.key.substr(key.size() + 1), each.value);
  return below;
}

/// A mapping of which single keys were set is lines; one that was set as a whole is a value.
std::string lines_of(const Place& place, const std::string& indent) {
  std::string text;
  for (const auto& [key, value] : place.map.entries()) {
    const std::vector<Setting> below = settings_below(place, key);
    text += indent + key + ":";
    if (!value.is_map() || (below.empty() && !indent.empty())) {
      text += " " + value.flow() + "\n";
      continue;
    }
    const YamlMap inner(value);
    text += "\n" + lines_of({inner, below}, indent + "  ");
  }
  return text;
}

}  // namespace

std::string keys_text(const std::vector<Setting>& settings) {
  const auto depth = [](const Setting& setting) { return std::ranges::count(setting.key, '.'); };
  std::vector<Setting> sections, keys;
  for (const Setting& setting : settings)
    (depth(setting) == 0 ? sections : keys).push_back(setting);
  std::ranges::stable_sort(keys, {}, depth);
  Yaml scenario = Yaml::of_nothing();
  scenario.apply(sections, &scenario_keys());
  scenario.wrap("cluster", "system");
  scenario.apply(keys, &scenario_keys());
  const YamlMap all(scenario);
  std::string replaced;
  for (const Setting& each : sections)
    if (all.at(each.key).is_map()) replaced += (replaced.empty() ? "" : ", ") + each.key;
  if (!replaced.empty()) replaced = "# in place of the scenario's whole " + replaced + "\n";
  return replaced + lines_of({all, settings}, "");
}

}  // namespace ddpsim
