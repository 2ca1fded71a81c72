#pragma once

#include "backend/measure/check_gradients.hpp"
#include "model/parallel/training.hpp"

namespace ddpsim {

/// What a real step of `training` has to leave as gradients on `ranks` ranks: a comm hook may lose
/// some of them (PowerSGD, topk), or not average them at all (noop, subgroups).
ExpectedGradients expected_gradients(const Training& training, int ranks);

}  // namespace ddpsim
