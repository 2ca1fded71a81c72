#include "scenarios/reader/catalogue/entry_keys.hpp"

namespace ddpsim {

std::vector<Yaml> layers_of(const std::vector<Entry>& entries) {
  std::vector<Yaml> layers;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    layers.push_back(entry->yaml);
  return layers;
}

}  // namespace ddpsim
