#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend/device/cuda/gpu.hpp"
#include "backend/job/module_file.hpp"

namespace ddpsim {

/// What the module `gpu` offers: ddpsim_gpu_module() returns one.
struct GpuModule {
  ModuleHeader header;
  /// See the functions of these names below.
  int (*count)();
  std::unique_ptr<Gpu> (*make)(int device, std::chrono::milliseconds timeout);
};

// All but device/cuda/calls needs no CUDA and is part of the program. These load the module when
// they are first called.

/// GPUs this process may use. Throws DeviceError where CUDA cannot be used: no module, no driver,
/// one too old.
int gpu_count();

/// What a look for GPUs found.
struct GpuLook {
  int count = 0;
  std::string problem;  ///< why there is none, in one line; empty: there are
};

/// Looks in a child process: after CUDA was touched, a process must not fork ranks that use it.
/// Never throws.
GpuLook look_for_gpus();

/// The real one. Throws DeviceError if there is no such device, or this build has no code for it.
/// `timeout`: for a call of NCCL to be taken by all ranks.
std::unique_ptr<Gpu> make_gpu(int device, std::chrono::milliseconds timeout);

}  // namespace ddpsim
