#pragma once

#include "tools/report/page.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// For people: of every strategy the buckets that are exposed, the largest first, with what held
/// them up; then the steps under each change of sim/predict/what_if.hpp.
Page why_page(const Comparison& comparison);

/// One record per compared strategy, for "why" in the results of `run --json`.
std::vector<Record> why_records(const Comparison& comparison);

}  // namespace ddpsim
