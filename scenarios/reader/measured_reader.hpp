#pragma once

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

/// A list of strategies, each once: `compare:`, `calibrate_on:`. Throws InputError.
std::vector<Strategy> read_strategies(const Yaml& given);

/// `measured:` of a scenario or of a workload profile: what a real run showed. Throws InputError.
Measured read_measured(const Yaml& given);

}  // namespace ddpsim
