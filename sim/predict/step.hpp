#pragma once

#include "model/ddp/training.hpp"
#include "model/schedule/schedule.hpp"
#include "model/timeline/metrics.hpp"
#include "model/timeline/timeline.hpp"

namespace ddpsim {

/// A step, predicted or measured: what was to be done, when it happened, and its figures.
struct Step {
  Training training;
  Schedule schedule;
  Timeline timeline;
  StepMetrics metrics;
};

}  // namespace ddpsim
