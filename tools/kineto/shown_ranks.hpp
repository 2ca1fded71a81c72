#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"
#include "tools/kineto/trace.hpp"

namespace ddpsim {

inline constexpr std::size_t most_traced_tasks = 20'000'000;

/// A rank of a step that a trace shows, and which of the simulated ones it is like.
struct ShownRank {
  int rank = 0, like = 0;
  std::string name;
};

/// The ranks of a step that a trace shows.
class ShownRanks {
 public:
  ShownRanks(const Scenario& scenario, const Step& step, TraceRanks which);

  int count() const { return count_; }
  int rank(int index) const;
  int like(int index) const;
  std::string name(int index) const;

 private:
  int simulated_, all_;
  bool slowest_last_;  ///< the last one simulated is the slowest of all, and the others are alike
  int count_;
  std::vector<ShownRank> some_;  ///< where some are exceptions; else empty
};

}  // namespace ddpsim
