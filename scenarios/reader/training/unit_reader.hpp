#pragma once

#include <cstdint>
#include <vector>

#include "model/workload/workload.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// `units: [tok_embeddings, layers.*, norm+output]`: a call of fully_shard each, in that order. A
/// name is a module's, with * for any text between two dots, and then each module that is named so
/// is a unit; names with + between are one unit of several modules. A parameter is in the first
/// unit that takes it. Throws InputError, also for a name that no module has and for a unit that
/// finds all of its parameters taken.
std::vector<std::vector<std::int32_t>> read_units(const Yaml& given, const Workload& workload);

}  // namespace ddpsim
