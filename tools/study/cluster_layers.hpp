#pragma once

#include <optional>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// A cluster's own mapping, then the ready cluster that it names and those that this one is based
/// on.
using ClusterLayers = std::vector<Entry>;

/// The layers of a scenario's cluster as its file and settings write them; none: nobody wrote one,
/// or the file is gone. Throws InputError where the settings do not go with the file.
std::optional<ClusterLayers> cluster_layers(const Scenario& scenario,
                                            const std::vector<Setting>& settings);

/// The device of such layers: the first that one of them writes, and where that has keys alone, the
/// ready one below as its base. None: no layer writes one.
std::optional<Yaml> device_in(const ClusterLayers& layers);

}  // namespace ddpsim
