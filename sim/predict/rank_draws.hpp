#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/cost_model.hpp"
#include "sim/predict/planned_step.hpp"

namespace ddpsim {

/// How many times as long as by the costs computation takes in one step.
struct DrawnPace {
  double typical = 1;              ///< on the ranks but for the slowest
  double slowest = 1;              ///< of those that are no exception
  std::vector<double> exceptions;  ///< [CostModel::exceptions] on the slowest of its ranks
};

/// How fast the ranks are in steps that differ.
///
/// In every step each rank's computation takes 1 + d + c times as long as the costs say. Its `d` is
/// the same in all steps: they are the expected order statistics of as many draws from a normal
/// distribution of the standard deviation RankSpread::lasting. Its `c` is drawn anew in each step,
/// from one of RankSpread::changing. An exception has its own factor in place of `d`, on 1 + c; the
/// others have the largest of the expected ones, so that no exception makes steps shorter. No
/// rank is faster than ten times. All ranks wait for the slowest, so that one is told apart, and
/// the exceptions; the others compute as the costs say, or as fast as the slowest, where that is
/// faster. A single rank that is no exception is the slowest.
class RankDraws {
 public:
  static constexpr int most_ranks = 1 << 20;
  /// `exceptions`: ranks, each in one of them at most, at least one in none.
  /// Throws std::invalid_argument if there are more ranks.
  RankDraws(const RankSpread& spread, int ranks, std::span<const RankException> exceptions = {});

  /// The pace of ranks in the step that `seed` names; the same on every machine.
  DrawnPace pace(std::uint64_t seed) const;

 private:
  std::vector<double> lasting_;             ///< [rank]
  std::vector<std::int32_t> exception_of_;  ///< [rank] nobody: none
  std::vector<double> factors_;             ///< [exception]
  double changing_;
  int ordinary_ = 0;  ///< ranks that are no exceptions
};

/// How long a step works in which the ranks have that pace, without its wait for batches. `costs`:
/// of the same exceptions; their slowest rank, their least step and the exceptions' factors are
/// changed. Throws as step_length does.
Duration working_length(CostModel& costs, const PlannedStep& planned, const DrawnPace& pace);

}  // namespace ddpsim
