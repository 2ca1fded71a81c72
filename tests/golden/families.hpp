#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/golden/draw.hpp"
#include "tests/golden/drawn_map.hpp"

namespace ddpsim::golden {

/// Scenarios that have something in common, such as a model of the catalogue.
struct Family {
  std::string name;  ///< "models/gpt2": the group, which is the name of its file, and the member
  Pins pins;         ///< what each of its scenarios has
  /// Further pins and the files that they name, which depend on the seed; null: none.
  Pins (*more)(const Draw& draw, const Pins& pins,
               std::map<std::string, std::string>& files) = nullptr;
};

/// All families, in order: from the catalogue, from the keys and choices of formats, and what is
/// written out.
const std::vector<Family>& all_families();

/// A scenario drawn from a seed, with the files it names.
struct DrawnScenario {
  std::string text;                            ///< YAML
  std::string summary;                         ///< in few words
  std::map<std::string, std::string> files{};  ///< name, content
};
DrawnScenario drawn_scenario(const Family& family, std::uint64_t seed);

}  // namespace ddpsim::golden
