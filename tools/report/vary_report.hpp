#pragma once

#include <vector>

#include "tools/report/page.hpp"
#include "tools/study/run_variants.hpp"

namespace ddpsim {

/// Rows by strategy, each against the first combination, with what a comm hook's own kernels and
/// memory cost; ends with the shortest step.
Page varied_page(const std::vector<VariedRun>& runs);

/// As of `run`, each with its settings.
List varied_records(const std::vector<VariedRun>& runs);
/// As of `run`, with a last column of settings.
Table varied_table(const std::vector<VariedRun>& runs);

}  // namespace ddpsim
