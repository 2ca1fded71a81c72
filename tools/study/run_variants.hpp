#pragma once

#include <string>
#include <vector>

#include "tools/study/comparison.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {

/// A scenario at one point of a grid.
struct VariedRun {
  std::vector<Setting> settings;
  Comparison run;
};

/// Every combination of `ddpsim run --vary`. Throws InputError for what a scenario refuses, and for
/// more points than one looks at (1000; `ddpsim sweep` takes more).
std::vector<VariedRun> run_variants(const std::string& file, const std::vector<Setting>& set,
                                    const Grid& grid, bool laws_only);

}  // namespace ddpsim
