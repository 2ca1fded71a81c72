#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backend/job/rendezvous.hpp"
#include "backend/nccl/gpu.hpp"

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

/// Lets this process be one of several ranks on one GPU: NCCL takes each for a host of its own, and
/// goes through sockets on loopback. Before the first call of NCCL.
/// Source: NVIDIA/nccl, src/misc/utils.cc (NCCL_HOSTID) and src/init.cc ("Duplicate GPU detected").
void share_one_gpu(int rank);

/// A rank on a GPU: a compute stream, a communication stream, one aside for what comm hooks compute
/// behind a collective, and an event for every dependency between them. The host thread enqueues the schedule in order, so hooks fire when their kernel is
/// enqueued, as in the simulator's asynchronous mode.
///
/// Figures between the hosts of the ranks (clocks, timelines, NCCL's id) travel over Gloo. Throws
/// DeviceError if the ranks do not find each other within `timeout`, or two of them have one GPU and
/// are not meant to.
std::unique_ptr<Backend> make_nccl_backend(std::unique_ptr<Gpu> gpu, const GpuLink& link,
                                           Rendezvous& rendezvous, int rank, int ranks,
                                           const std::string& interface,
                                           std::chrono::milliseconds timeout);

}  // namespace ddpsim
