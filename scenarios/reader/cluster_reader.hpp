#pragma once

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

/// `cluster:` of a scenario, with devices and links from the catalogue, files or inline. Throws
/// InputError.
///
/// With `calibration: FILE` it is the machine that was measured: every other key may be missing, and
/// what is there goes before the calibration. A link stands in place of its all-reduces, `launch` of
/// its launch times, `interference` of its slowdowns; `device` only of what it has no times for.
Cluster read_cluster(const Yaml& given);

/// A device or link by itself, as `device:` or `intra_node:` would give it.
Device read_device(const Yaml& given);
Link read_link(const Yaml& given);

}  // namespace ddpsim
