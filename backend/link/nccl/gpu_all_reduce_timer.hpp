#pragma once

#include <vector>

#include "backend/link/nccl/nccl_link.hpp"

namespace ddpsim {

/// See Backend::time_all_reduces.
std::vector<Duration> time_gpu_all_reduces(Gpu& gpu, NcclLink& link, GpuWaiter& waiter,
                                           GpuClock& clock, Bytes size, int count, bool waiting);

}  // namespace ddpsim
