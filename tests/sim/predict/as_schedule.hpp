#pragma once

#include "model/schedule/variants.hpp"
#include "model/timeline/schedule_times.hpp"
#include "sim/predict/step.hpp"

namespace ddpsim::fixtures {

/// A step as the tasks of the schedule that its job was made of: of its first rank, and when each
/// of the ranks that are told apart did them.
struct AsSchedule {
  Schedule schedule;
  Timeline timeline;
};

inline AsSchedule as_schedule(const Step& step) {
  const Schedule& whole = step.planned->schedule;
  return {step.job().programs.size() > 1 ? schedule_of_rank(whole, 0) : whole,
          timeline_of(whole, step.job(), step.times, step.ranks)};
}

inline Timeline timeline_of_schedule(const Step& step) {
  return as_schedule(step).timeline;
}

}  // namespace ddpsim::fixtures
