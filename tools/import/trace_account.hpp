#pragma once

#include <vector>

#include "tools/import/trace_steps.hpp"

namespace ddpsim {

/// Splits each step into its parts and tells where the time of each went (FoundStep::parts), and
/// what follows: the optimizer's own time, and what the step spends outside of its passes.
/// `all_reduces` of each step are known. Holds one order of the device's spans at a time.
void account(const IndexedTrace& index, std::vector<RawStep>& steps);

}  // namespace ddpsim
