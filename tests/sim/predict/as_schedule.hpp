#pragma once

#include "model/schedule/variants.hpp"
#include "sim/predict/step.hpp"
#include "tests/model/timeline/schedule_times.hpp"

namespace ddpsim::fixtures {

/// A step as the tasks of the schedule that its job was made of: of its first rank, and when each
/// of the ranks that are told apart did them.
struct AsSchedule {
  Schedule schedule;
  Timeline timeline;
};

inline AsSchedule as_schedule(const Step& step) {
  const Schedule& whole = step.planned->schedule;
  AsSchedule result{step.job().programs.size() > 1 ? schedule_of_rank(whole, 0) : whole, {}};
  result.timeline.end = step.times.end;
  for (std::size_t index = 0; index < step.ranks.size(); ++index) {
    const RankOfJob rank = step.rank(index);
    if (rank.details != nullptr && index == 0) result.timeline.details = *rank.details;
    result.timeline.ranks.push_back(times_of(whole, rank.program, rank.times));
  }
  return result;
}

inline Timeline timeline_of_schedule(const Step& step) {
  return as_schedule(step).timeline;
}

}  // namespace ddpsim::fixtures
