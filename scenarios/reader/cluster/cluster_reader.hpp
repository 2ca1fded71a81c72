#pragma once

#include <optional>

#include "model/base/price.hpp"
#include "model/cost/calibration.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

struct MapDescription;

/// The keys of `cluster:`.
const MapDescription& cluster_keys();

/// `cluster:` of a scenario: a mapping, whose `system` may name a ready cluster, or the name of
/// one. `price` becomes what it says of that, or nothing. Throws InputError.
CalibratedCluster read_cluster(const Yaml& given, std::optional<Price>& price);

/// An entry of the catalogue of clusters: one node, unless it says how many there are.
struct ReadyCluster {
  std::string name, source;
  Cluster cluster;
  std::optional<int> nodes{};  ///< none: it does not say how many
  std::optional<Price> price{};
};
ReadyCluster read_ready_cluster(const std::string& name);
ReadyCluster read_ready_cluster(const Yaml& named);

}  // namespace ddpsim
