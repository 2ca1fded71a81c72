#include "tools/report/reports/keys_text.hpp"

#include <algorithm>

#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"

namespace ddpsim {

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
  std::string text;
  const YamlMap all(scenario);
  for (const auto& [section, value] : all.entries()) {
    text += section + ":";
    if (!value.is_map()) {
      text += " " + value.flow() + "\n";
      continue;
    }
    text += "\n";
    const YamlMap within(value);
    for (const auto& [key, inner] : within.entries())
      text += "  " + key + ": " + inner.flow() + "\n";
  }
  return text;
}

}  // namespace ddpsim
