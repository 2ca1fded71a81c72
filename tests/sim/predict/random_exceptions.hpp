#pragma once

#include "model/cost/cost_model.hpp"
#include "tests/sim/predict/random_steps.hpp"

namespace ddpsim::fixtures {

/// Up to two of the ranks compute at another pace, pause, or both; one rank at least is as it was.
inline void differ_some_ranks(Dice& dice, CostModel& costs) {
  costs.exceptions.clear();
  for (int rank = 0; rank < std::min(2, costs.ranks - 1); ++rank) {
    RankException exception;
    exception.rank = rank;
    if (dice.one_in(2)) exception.compute = 0.01 * dice.between(50, 200);
    if (dice.one_in(2)) {
      exception.pause = dice.time(1000);
      exception.at = dice.one_in(3) ? dice.between(0, 1) : 0.01 * dice.between(0, 100);
    }
    if (exception.computes_otherwise()) costs.exceptions.push_back(exception);
  }
}

}  // namespace ddpsim::fixtures
