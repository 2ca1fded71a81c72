#pragma once

#include <memory>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

struct MapDescription;

/// The keys of `workload:`.
const MapDescription& workload_keys();

/// `workload:` of a scenario: fills workload, optimizer and times, and `measured` if it is a
/// workload profile with such a block. The model is a catalogue entry, a description in a file or
/// inline, or a workload profile. Throws InputError.
void read_workload(const Yaml& given, Scenario& scenario);

/// The network of the same `workload:`, which the scenario holds, with parameters in `type`: as it
/// runs where they are cast before its passes (Workload::cast). Null: they are of that type. Throws
/// InputError at `place` where nothing says how it runs then, or the device does not multiply so.
std::shared_ptr<const Workload> read_cast_workload(const Yaml& given, const Scenario& scenario,
                                                   DType type, const Yaml& place);

/// A model of the catalogue by name, or a description in a file by its path, at batch 1 and
/// sequence 1, or as many tokens as there are experts. Throws InputError.
Workload read_catalogue_model(const std::string& name);

}  // namespace ddpsim
