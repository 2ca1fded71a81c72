#pragma once

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

struct MapDescription;

/// The keys of `training:`.
const MapDescription& training_keys();

/// `training:` of a scenario; needs its workload to have been read. Throws InputError.
Training read_training(const Yaml& given, const Workload& workload);

/// Refuses settings that do not go together with each other, the workload or the cluster
/// (model/parallel/policy/refusals.hpp): `read` is what was read of `scenario`. Throws InputError
/// where the key in question stands.
void check_training(const YamlMap& scenario, const Scenario& read);

}  // namespace ddpsim
