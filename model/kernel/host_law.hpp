#pragma once

#include "model/base/quantity.hpp"

namespace ddpsim {

/// What a call of PyTorch costs the host in a step, over what it costs where it is called again and
/// again: instruction caches are cold, and Python runs in between. Of the networks of
/// tests/data/h200 whose kernels are known, ResNet-101 with channels last waits for its host most:
/// its calls, in a loop, sum to 10.1 ms forward and 14.8 ms backward, and its passes take 17.0 and
/// 24.4 ms.
inline constexpr double host_of_a_step = 1.65;

/// The host's time of a call in a step, from that of the call in a warm loop.
inline Duration host_in_step(Duration warm) {
  return scaled(warm, host_of_a_step);
}

}  // namespace ddpsim
