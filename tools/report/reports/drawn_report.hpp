#pragma once

#include <string>
#include <vector>

#include "tools/report/records/record.hpp"
#include "tools/study/drawn_steps.hpp"

namespace ddpsim {

/// "20 of 1000 seeds".
std::string seeds_done(int done, int of);

/// Every field of fields::of_drawn_steps.
Record drawn_figures(const DrawnSteps& steps);

/// fields::seeds of a strategy.
Record seeds_record(const DrawnSteps& steps);

/// A row for each strategy compared.
Table seeds_table(const Comparison& run, const std::vector<DrawnSteps>& drawn);

}  // namespace ddpsim
