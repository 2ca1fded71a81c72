#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Steps one after the other as one schedule, so that the host goes on to the next step's launches
/// while the device still works on the last one.
struct JoinedSteps {
  Schedule schedule;
  std::vector<std::uint32_t> begins;  ///< [step] its first task

  /// The host stands still until DDP's logger can read the timers of an iteration.
  struct TimerRead {
    std::size_t step = 0;    ///< whose forward does it
    std::uint32_t task = 0;  ///< the waiting
  };
  std::vector<TimerRead> timer_reads;  ///< in order
};

/// `steps` from the first iteration of a training on, all of the same strategy and hooks.
///
/// Nothing is added between two steps but what a training loop without synchronisation has there:
/// streams keep their order, a collective or a blocking read that comes before any kernel of its
/// own step still waits for the kernels enqueued before it, and what nobody waited for in its step
/// stays in its stream's queue. Before the forward that follows an iteration that DDP's logger
/// samples (Schedule::logged; `samples` says which, counted from 1) the host waits for that
/// iteration's last mark, an event on the compute stream (rule R47); a device that runs kernels on
/// the host thread has timers on the host, and nothing to wait for. As DDP counts them, every
/// micro-batch that communicates is an iteration.
/// Throws std::invalid_argument if there are no steps.
/// Source: pytorch logger.cpp set_runtime_stats_and_log, called first of all in DDP's forward;
/// reducer_cuda.cpp CudaTimer::measureDifference synchronises both its events.
JoinedSteps join_steps(std::span<const Schedule* const> steps,
                       const std::function<bool(int)>& samples);

}  // namespace ddpsim
