#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/parallel/training.hpp"
#include "model/workload/workload.hpp"
#include "scenarios/reader/format/value.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// What `units` says: the parameters of each call of fully_shard, its modules, and its settings;
/// none of these where no unit has any.
struct GivenUnits {
  std::vector<std::vector<std::int32_t>> parameters;
  std::vector<std::vector<std::string>> modules;
  std::vector<UnitSettings> settings;
};

/// `units: [tok_embeddings, layers.*, norm+output]`: a call of fully_shard each, in that order. A
/// pattern is one for each module that it names; a+b is one of both. Parameters that no call took
/// before are the unit's. `{modules: layers.*, reshard_after_forward: false}` has settings besides.
/// Throws InputError where a call would make no unit, or a list names a module that is none.
GivenUnits read_units(const Yaml& given, const Workload& workload);
Type units_type();

/// `auto`, true, false, or how many ranks next to each other share parameters behind forward.
Value<std::optional<Reshard>> reshard_value();

}  // namespace ddpsim
