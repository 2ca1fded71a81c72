#pragma once

#include "model/scenario/scenario.hpp"
#include "sim/predict/step_model.hpp"

namespace ddpsim {

/// Scales the passes so that the training's step without communication takes these times (those
/// given; over all micro-batches), and says by how much. One pass after the other: none depends on
/// those behind it, but where the host bounds a pass, on those before it.
PassFactors fit_times(StepModel& model, const Training& training, const MeasuredTimes& times);

}  // namespace ddpsim
