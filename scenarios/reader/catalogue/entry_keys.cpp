#include "scenarios/reader/catalogue/entry_keys.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ddpsim {

std::string source_of(const std::vector<Entry>& entries) {
  const auto said_by = [](const Entry& entry) {
    const auto source = YamlMap(entry.yaml).find("source");
    return source ? source->scalar() : "";
  };
  const std::string own = said_by(entries.front());
  const bool none =
      std::ranges::all_of(entries, [&](const Entry& e) { return said_by(e).empty(); });
  if (entries.size() == 1 || none) return own;
  return fmt::format("{}; the rest as {}", own.empty() ? "not said" : own, entries[1].name);
}

std::string without_mark(std::string name) {
  if (name.ends_with(mark_of_changes)) name.resize(name.size() - mark_of_changes.size());
  return name;
}

std::vector<Yaml> layers_of(const std::vector<Entry>& entries) {
  std::vector<Yaml> layers;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    layers.push_back(entry->yaml);
  return layers;
}

}  // namespace ddpsim
