#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/quantity.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// Steps under one strategy, in each of which the ranks' paces were drawn anew (RankDraws).
struct DrawnSteps {
  std::vector<double> step_ms;     ///< [seed]
  std::vector<double> exposed_ms;  ///< [seed] beyond the step without communication, drawn alike

  int count() const { return static_cast<int>(step_ms.size()); }
};

inline constexpr int most_seeds = 10'000;

/// [strategy compared] So many steps, of the seeds 1, 2, ..., on all cores. `watch`: how many seeds
/// are done. Throws InputError, of `--seeds`, where nothing changes from step to step, if `count`
/// is below 1 or above most_seeds, and if there are too many ranks.
std::vector<DrawnSteps> drawn_steps(const Comparison& run, int count,
                                    const std::function<void(int done)>& watch = {});

}  // namespace ddpsim
