#pragma once

#include <chrono>
#include <memory>

#include "backend/device/cuda/gpu.hpp"

namespace ddpsim {

/// The real one: CUDA's runtime, cuBLAS, NCCL and kernels of our own. Throws DeviceError if there
/// is no such device, or this build has no code for it. `timeout`: for a call of NCCL to be taken
/// by all ranks.
std::unique_ptr<Gpu> make_cuda_gpu(int device, std::chrono::milliseconds timeout);

}  // namespace ddpsim
