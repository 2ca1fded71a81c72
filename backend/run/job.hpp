#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "backend/backend.hpp"
#include "backend/plugin/plugins.hpp"

namespace ddpsim {

/// How the ranks of a job are started and find each other.
struct JobOptions {
  std::string backend = "gloo";  ///< a name of backends()
  int ranks = 0;                 ///< to start here; 0: those of the launcher's environment
  std::string rendezvous;        ///< "file:DIR", "redis://host:port"; empty: a private directory
  std::string interface;         ///< network interface; empty: loopback for ranks started here
  bool gpus_share =
      false;         ///< nccl: all ranks of a host on its first GPU; only gradients mean something
  int loopback = 0;  ///< nccl: one rank moves, to itself, what one of so many would; 0: not
  bool nccl_profiler =
      false;         ///< nccl: starts and ends of collectives by NCCL's profiler interface
  int channels = 0;  ///< nccl: thread blocks of a collective, at most; 0: NCCL decides
  std::chrono::milliseconds timeout{60000};  ///< for anything a rank waits for
  const Plugins* plugins = nullptr;          ///< hooks of the user's own; must outlive the job
  /// What all ranks must agree on (scenario, flags): ranks that differ are told so before any
  /// work.
  std::string agreement;
};

/// What every rank does with its backend; returns the exit code. Rank 0 speaks for the job.
using RankBody = std::function<int(Backend&)>;

/// Runs `body` as every rank this process is to start, and returns the job's exit code: 0, or that
/// of the first rank that failed.
///
///   threads   `ranks` threads of this process
///   gloo      `ranks` processes forked from this one, or, under torchrun, mpirun or srun, this
///             process as the one rank it was started to be
///   nccl      as gloo, each rank with a GPU of its own
///
/// A rank that fails prints one line, "ddpsim: rank 1: ...", on stderr; ranks still alive a timeout
/// later are killed. No process, thread, socket or file of the job outlives the call. Forks, so
/// call it before any thread has been started.
/// Throws DeviceError if the job cannot start, std::invalid_argument for options that contradict.
int run_job(const JobOptions& options, const RankBody& body);

}  // namespace ddpsim
