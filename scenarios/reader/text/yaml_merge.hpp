#pragma once

#include <string>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace ddpsim {

/// A mapping that stands in place of one of the file, and where that one stands.
using CopiedMap = std::pair<YAML::Node, YAML::Mark>;

/// Writes YAML's merge keys out: `<<: *base`, or `<<: [*a, *b]`, gives a mapping the keys of
/// others that it does not have itself; of several the first goes before. Mappings are copied for
/// it, none is written to; `copies` tells which. Throws InputError, in the name of `file`, where
/// what is merged is no mapping, or the merged keys are more than a scenario can need.
YAML::Node with_merges(const YAML::Node& root, const std::string& file,
                       std::vector<CopiedMap>& copies);

}  // namespace ddpsim
