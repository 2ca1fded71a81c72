#pragma once

#include "model/cost/calibration.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

struct MapDescription;

/// The keys of `cluster:`.
const MapDescription& cluster_keys();

/// `cluster:` of a scenario. Throws InputError.
CalibratedCluster read_cluster(const Yaml& given);

}  // namespace ddpsim
