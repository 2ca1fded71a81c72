#pragma once

#include "sim/predict/step.hpp"
#include "tests/sim/predict/fixtures.hpp"

namespace ddpsim::fixtures {

/// Did the ranks that are told apart do everything at the same times?
inline bool same(const Step& a, const Step& b) {
  if (a.times.end != b.times.end || a.ranks.size() != b.ranks.size()) return false;
  for (std::size_t index = 0; index < a.ranks.size(); ++index)
    if (!same(a.rank(index).times, b.rank(index).times)) return false;
  return true;
}

}  // namespace ddpsim::fixtures
