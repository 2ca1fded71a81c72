#pragma once

#include <string>
#include <vector>

#include "tools/report/comparison.hpp"
#include "tools/sweep/grid.hpp"

namespace ddpsim {

/// A scenario at one point of a grid.
struct VariedRun {
  std::vector<Setting> settings;
  Comparison run;
};

/// `ddpsim run --vary`: every combination, side by side, in one table. Throws InputError for what a
/// scenario refuses, and for more points than one looks at (1000; `ddpsim sweep` takes more).
std::vector<VariedRun> run_varied(const std::string& file, const std::vector<Setting>& set,
                                  const Grid& grid, bool laws_only);

/// Rows by strategy, each against the first combination, with what a comm hook's own kernels and
/// memory cost; ends with the shortest step.
Page varied_page(const std::vector<VariedRun>& runs);

/// As of `run`, each with its settings.
List varied_records(const std::vector<VariedRun>& runs);
/// As of `run`, with a last column of settings.
Table varied_table(const std::vector<VariedRun>& runs);

}  // namespace ddpsim
