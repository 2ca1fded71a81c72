#pragma once

#include <string>

#include "tools/report/comparison.hpp"

namespace ddpsim {

/// For people: of every strategy the buckets that are exposed, the largest first, with what held
/// them up; then the steps under each change of sim/what_if.hpp.
std::string why_text(const Comparison& comparison);

/// One object per compared strategy, for "why" in the results of `run --json`.
std::vector<nlohmann::ordered_json> why_json(const Comparison& comparison);

}  // namespace ddpsim
