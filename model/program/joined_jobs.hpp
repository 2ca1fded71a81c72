#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/program/job.hpp"

namespace ddpsim::program {

/// Steps one after the other as one job, so that the host goes on to the next step's launches while
/// the device still works on the last one.
struct JoinedJobs {
  Job job;
  std::vector<std::uint32_t> begins;  ///< [step] its first task

  /// The host stands still until DDP's logger can read the timers of an iteration.
  struct TimerRead {
    std::size_t step = 0;    ///< whose forward does it
    std::uint32_t task = 0;  ///< the waiting
  };
  std::vector<TimerRead> timer_reads;  ///< in order
};

/// The jobs `kinds[sequence[0]]`, `kinds[sequence[1]]`, ... from the first iteration of a training
/// on, whose ranks are all alike. Each kind's buffers, deeds and groups stand in it once; buffers
/// and works that several have alike are one. So memory of one step is used again by the next,
/// which does not wait for it where a communicator has several collectives under way together: such
/// a job is to be simulated, and check() may refuse it.
///
/// Nothing is added between two steps but what a training loop without synchronisation has there:
/// streams keep their order, a collective or a wait of the host that comes before any kernel of its
/// own step still waits for the kernels enqueued before it, and what nobody waited for in its step
/// stays in its stream's queue. Before the forward that follows an iteration that DDP's logger
/// samples (Mark::Kind::logged; `samples` says which, counted from 1) the host waits for that
/// iteration's last mark, an event on the compute stream (rule R47). As DDP counts them, every
/// micro-batch that communicates is an iteration.
///
/// Throws std::invalid_argument if there are no steps, and for ranks that are not alike.
/// Source: pytorch logger.cpp set_runtime_stats_and_log, called first of all in DDP's forward;
/// reducer_cuda.cpp CudaTimer::measureDifference synchronises both its events.
JoinedJobs join(std::span<const Job* const> kinds, std::span<const std::int32_t> sequence,
                const std::function<bool(int)>& samples);

}  // namespace ddpsim::program
