#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

Value<Strategy> strategy_value();
/// A list of strategies, each once: `compare:`, `calibrate_on:`.
Value<std::vector<Strategy>> strategies_value();
/// Why a strategy cannot be in `calibrate_on:`, and which can: "a row of flat fits nothing: ...".
/// "" of one that can.
std::string no_fit_of(Strategy strategy);

/// The keys of `measured:` of a scenario or of a workload profile: what a real run showed.
const Map<Measured>& measured_map();
/// The mapping, written over several lines.
Value<Measured> measured_value();

}  // namespace ddpsim
