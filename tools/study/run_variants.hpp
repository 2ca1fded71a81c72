#pragma once

#include <cstddef>
#include <functional>
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

/// A point that the scenario, or a law, refuses.
struct RefusedRun {
  std::vector<Setting> settings;
  std::string problem;
};

struct Variants {
  std::vector<VariedRun> runs;      ///< at least one
  std::vector<RefusedRun> refused;  ///< likewise in the order of the grid
};

/// Every combination of `ddpsim run --vary`. Throws InputError if all are refused, and for more
/// points than one looks at (1000; `ddpsim sweep` takes more). `watch` hears after each how many
/// are done.
Variants run_variants(const std::string& file, const std::vector<Setting>& set, const Grid& grid,
                      bool laws_only, const std::function<void(std::size_t)>& watch = {});

}  // namespace ddpsim
