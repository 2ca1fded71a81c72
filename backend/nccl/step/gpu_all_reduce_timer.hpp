#pragma once

#include <vector>

#include "backend/nccl/collectives/gpu_collectives.hpp"
#include "backend/nccl/step/gpu_step_clock.hpp"

namespace ddpsim {

/// See Backend::time_all_reduces.
std::vector<Duration> time_gpu_all_reduces(Gpu& gpu, GpuCollectives& collectives, GpuWaiter& waiter,
                                           GpuStepClock& clock, Bytes size, int count,
                                           bool waiting);

}  // namespace ddpsim
