#pragma once

#include <string>
#include <vector>

#include "tools/sweep/sweep_results.hpp"

namespace ddpsim {

/// What `ddpsim sweep` says beside its results, in sentences without "note: ": on the files that
/// the scenario names, on the points' clusters (of a large grid those of the first points), each
/// once with the points that it is of, on clusters that cannot be the `best`, and on steps that do
/// not fit their device's memory.
std::vector<std::string> sweep_notes(const Sweep& sweep, const PointResults& results,
                                     const std::optional<Field>& best = {});

}  // namespace ddpsim
