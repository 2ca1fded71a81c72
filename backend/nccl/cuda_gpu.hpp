#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend/nccl/gpu.hpp"

namespace ddpsim {

/// GPUs this process may use. Throws DeviceError where CUDA cannot be used: no driver, one too old.
int gpu_count();

/// Why there is no GPU for this process, in one line; empty: there is. Never throws. Touches CUDA, after
/// which a process must not fork ranks that use it; so it looks in a child of its own.
std::string missing_gpu();

/// The real one: CUDA's runtime, cuBLAS, NCCL and kernels of our own. Throws DeviceError if there is
/// no such device, or this build has no code for it.
/// `timeout`: for a call of NCCL to be taken by all ranks.
std::unique_ptr<Gpu> make_cuda_gpu(int device, std::chrono::milliseconds timeout);

}  // namespace ddpsim
