#pragma once

#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/drawn_steps.hpp"

namespace ddpsim {

/// The lengths of steps whose ranks' paces were drawn: for each strategy compared, which share of
/// its steps is no longer than so much. Nothing where there are fewer than two steps.
void add_seeds_picture(Page& page, const Comparison& run, const std::vector<DrawnSteps>& drawn);

}  // namespace ddpsim
