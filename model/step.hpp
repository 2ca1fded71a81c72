#pragma once

#include "model/metrics.hpp"
#include "model/schedule.hpp"
#include "model/timeline.hpp"
#include "model/training.hpp"

namespace ddpsim {

/// A step, predicted or measured: what was to be done, when it happened, and its figures.
struct Step {
  Training training;
  Schedule schedule;
  Timeline timeline;
  StepMetrics metrics;
};

}  // namespace ddpsim
