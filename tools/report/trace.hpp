#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// A Chrome trace (JSON; opens in Perfetto): a process per step and rank, a thread per stream,
/// hooks as instants, and a flow arrow from the last gradient of a bucket to its all-reduce. Ranks
/// that are alike are simulated once and written each, up to eight. Times in microseconds, to the
/// picosecond.
std::string chrome_trace(const Scenario& scenario, const std::vector<NamedStep>& steps);

}  // namespace ddpsim
