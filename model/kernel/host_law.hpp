#pragma once

#include "model/base/quantity.hpp"

namespace ddpsim {

/// What a call of PyTorch costs the host in a step, over what it costs where it is called again and
/// again: instruction caches are cold, and Python runs in between. Of the networks of
/// tests/data/h200 whose kernels are known, ResNet-101 with channels last waits for its host most:
/// the calls of its passes, in a loop, sum to 25.6 ms, and its step takes 40.7 ms, the optimizer's
/// 2.2 among them. Another process on a host of the same kind took 2.2 to 2.7 times.
inline constexpr double host_of_a_step = 1.5;

/// The host's time of a call in a step, from that of the call in a warm loop.
inline Duration host_in_step(Duration warm) {
  return scaled(warm, host_of_a_step);
}

}  // namespace ddpsim
