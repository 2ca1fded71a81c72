#pragma once

#include <string>

namespace ddpsim {

/// How the ranks' GPUs make an all-reduce.
struct GpuLink {
  enum class Mode {
    group,     ///< NCCL's own, between the ranks
    shared,    ///< the same, but the ranks share one GPU: gradients are real, times mean nothing
    loopback,  ///< one rank moves what a rank of a ring of `loopback` would, to itself
  };
  Mode mode = Mode::group;
  int loopback = 0;      ///< ranks it stands for
  bool profile = false;  ///< collectives start and end when NCCL's profiler interface says
  int channels = 0;      ///< the most thread blocks a collective may take; 0: NCCL decides
};

/// For people: what the link of a rank of `ranks` is.
std::string description_of(const GpuLink& link, int ranks);

/// Lets this process be one of several ranks on one GPU: NCCL takes each for a host of its own, and
/// goes through sockets on loopback. Before the first call of NCCL.
/// Source: NVIDIA/nccl, src/misc/utils.cc (NCCL_HOSTID) and src/init.cc ("Duplicate GPU detected").
void share_one_gpu(int rank);

}  // namespace ddpsim
