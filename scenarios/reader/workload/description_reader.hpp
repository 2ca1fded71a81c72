#pragma once

#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/workload/description.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// The keys of a workload description.
const Map<WorkloadDescription>& workload_description_map();

/// Reads the mapping of a description in full and checks it: every index points somewhere, sums
/// stay countable, FLOPs are those of their shapes. Throws InputError.
WorkloadDescription read_workload_description(const Yaml& given);

}  // namespace ddpsim
