#pragma once

#include <string>

#include <boost/program_options.hpp>

#include "backend/run/job.hpp"

namespace ddpsim {

/// The flags of commands that start ranks.
struct JobFlags {
  std::string backend = "gloo", ranks, rendezvous, interface, timeout = "60 s", loopback, channels;
  bool gpus_share = false, nccl_profiler = false;

  void add_to(boost::program_options::options_description& flags);
  /// Throws InputError. `fallback` ranks are started where neither a flag nor a launcher's
  /// environment says how many; 0: that is an error.
  JobOptions options(int fallback) const;
  /// Kernels of this backend run on the host thread.
  bool synchronous() const { return backend != "nccl"; }
};

/// Is this process, or one that it forks, the rank that writes the job's results?
bool speaks(const JobOptions& options);

/// The share of the processors' time that other programs leave now to the job's ranks of this host
/// (tools/study/machine_doubts.hpp), asked where the process speaks; 1 elsewhere, and for ranks on
/// GPUs.
double left_by_others(const JobOptions& options);

/// That the ranks of this job all run on one node of a batch job that has more of them, or are
/// fewer than its tasks, because no launcher started this process; and what to write so that they
/// do not. `command`: "validate". "" where the ranks are as many and where they were asked to be.
std::string allocation_note(const JobFlags& flags, const JobOptions& options,
                            const std::string& command);

/// Ranks that an all-reduce of the job is made for.
int link_ranks(const JobOptions& options);

/// Everything that must be the same on all ranks for their steps to be: shapes, jobs, `flags`.
std::string agreement_of(const Workload& workload, const std::vector<program::Job>& steps,
                         const std::string& flags);

}  // namespace ddpsim
