#pragma once

#include <memory>
#include <vector>

#include "model/parallel/training.hpp"
#include "model/timeline/metrics.hpp"
#include "sim/predict/planned_step.hpp"

namespace ddpsim {

/// A step, predicted or measured: what was to be done, when it happened, and its figures.
struct Step {
  Training training{};
  std::shared_ptr<const PlannedStep> planned{};
  JobTimeline times{};  ///< of planned->job
  std::vector<std::size_t>
      ranks{};            ///< of the job, that are told apart; the first is a typical one
  StepMetrics metrics{};  ///< of ranks[0]

  const program::Job& job() const { return planned->job; }
  RankOfJob rank(std::size_t index = 0) const { return {job(), times, ranks.at(index)}; }
  /// Which of `ranks` is as this one of the job; the first where none is.
  std::size_t index_of(std::size_t rank) const {
    for (std::size_t index = 0; index < ranks.size(); ++index)
      if (times.class_of[ranks[index]] == times.class_of[rank]) return index;
    return 0;
  }
};

}  // namespace ddpsim
