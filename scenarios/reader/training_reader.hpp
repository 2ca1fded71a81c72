#pragma once

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

struct MapDescription;

/// The keys of `training:`.
const MapDescription& training_keys();

/// `training:` of a scenario; needs its workload to have been read. Throws InputError.
Training read_training(const Yaml& given, const Workload& workload);

/// What DistributedDataParallel, or the comm hook, cannot do with these parameters. Throws
/// InputError at `where`.
void check_bucketed(const Yaml& where, const Training& training, const Workload& workload);

}  // namespace ddpsim
