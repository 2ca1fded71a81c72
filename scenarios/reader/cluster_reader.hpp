#pragma once

#include "model/cost/calibration.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

struct MapDescription;

/// The keys of `cluster:`.
const MapDescription& cluster_keys();

/// `cluster:` of a scenario: a mapping, whose `system` may name a ready cluster, or the name of
/// one. Throws InputError.
CalibratedCluster read_cluster(const Yaml& given);

/// An entry of the catalogue of clusters: one node.
struct ReadyCluster {
  std::string name, source;
  Cluster cluster;
};
ReadyCluster read_ready_cluster(const std::string& name);

}  // namespace ddpsim
