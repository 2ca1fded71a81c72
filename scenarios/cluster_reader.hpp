#pragma once

#include "model/cluster.hpp"
#include "scenarios/yaml.hpp"

namespace ddpsim {

/// `cluster:` of a scenario, with devices and links from the catalogue, files or inline. Throws
/// InputError.
Cluster read_cluster(const Yaml& given);

/// A device or link by itself, as `device:` or `intra_node:` would give it.
Device read_device(const Yaml& given);
Link read_link(const Yaml& given);

}  // namespace ddpsim
