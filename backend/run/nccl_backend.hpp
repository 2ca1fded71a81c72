#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backend/device/cuda/gpu.hpp"
#include "backend/job/rendezvous.hpp"
#include "backend/link/nccl/gpu_link.hpp"

namespace ddpsim {

/// A rank on a GPU: a stream of the GPU for each stream of a job, and an event for every dependency
/// between them. The host thread enqueues the program in order, so hooks fire when their kernel is
/// enqueued, as in the simulator's asynchronous mode.
///
/// Figures between the hosts of the ranks (clocks, timelines, NCCL's id) travel over Gloo. Throws
/// DeviceError if the ranks do not find each other within `timeout`, or two of them have one GPU
/// and are not meant to.
std::unique_ptr<Backend> make_nccl_backend(std::unique_ptr<Gpu> gpu, const GpuLink& link,
                                           Rendezvous& rendezvous, int rank, int ranks,
                                           const std::string& interface,
                                           std::chrono::milliseconds timeout);

}  // namespace ddpsim
