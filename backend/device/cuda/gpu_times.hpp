#pragma once

#include <cstdint>
#include <vector>

#include "backend/device/cuda/gpu_clock.hpp"
#include "backend/device/cuda/gpu_events.hpp"
#include "backend/execute/streams.hpp"

namespace ddpsim {

/// What began and ended when, by the events of a run that is over: a kernel began once its stream
/// was free, what it waits for had ended, and the host had enqueued its first launch, as in the
/// simulator; a collective also not before its event. `handed_over` [task]: is on the GPU. The run
/// has when the host issued each task.
void read_events(const execute::Running& running, const std::vector<bool>& handed_over,
                 const GpuEvents& events, const GpuClock& clock);

/// Starts and ends of collectives as NCCL's profiler interface saw them on the GPU, whose own clock
/// showed `noted` at the start of the step. They lie within what the events say, or are not of
/// these collectives; then the events stand.
void read_profiler(const execute::Running& running, const GpuClock& clock, std::uint64_t noted);

}  // namespace ddpsim
