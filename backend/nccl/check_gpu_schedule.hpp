#pragma once

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Throws std::invalid_argument, one line, for a schedule that GPUs cannot carry out: user hooks
/// that run on the host's memory, comm hooks that GpuHookData refuses, more than one collective at
/// a time.
void check_gpu_schedule(const Schedule& schedule);

}  // namespace ddpsim
