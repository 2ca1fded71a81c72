#pragma once

#include <vector>

#include "backend/backend.hpp"
#include "backend/nccl/step/gpu_step_clock.hpp"

namespace ddpsim {

/// Does the task become work on the GPU?
constexpr bool enqueues(const Task& task) {
  return task.stream != Stream::host;
}

/// What began and ended when, by the events of a step that is over: a kernel began once its stream
/// was free, what it waits for had ended, and the host had enqueued its first launch, as in the
/// simulator; a collective also not before its event. `times` has when the host issued each task.
void read_events(const Schedule& schedule, const GpuStepClock& clock,
                 std::vector<TaskTimes>& times);

/// Starts and ends of collectives as NCCL's profiler interface saw them on the GPU, whose own clock
/// showed `noted` at the start of the step. They lie within what the events say, or are not of
/// these collectives; then the events stand.
void read_profiler(const Schedule& schedule, const GpuStepClock& clock, std::uint64_t noted,
                   std::vector<TaskTimes>& times);

}  // namespace ddpsim
