#pragma once

#include "model/base/quantity.hpp"
#include "model/kernel/step_constants.hpp"

namespace ddpsim {

/// The host's time of a call in a step, from that of the call in a warm loop: in a step instruction
/// caches are cold, and Python runs in between. Of the networks of tests/data/h200 whose kernels
/// are known, ResNet-101 with channels last waits for its host most: its step less its optimizer,
/// over its passes' calls in a loop, is the factor. Another process on a host of the same kind took
/// 2.2 to 2.7 times.
inline Duration host_in_step(Duration warm,
                             double host_of_a_step = StepConstants{}.host_of_a_step) {
  return scaled(warm, host_of_a_step);
}

}  // namespace ddpsim
