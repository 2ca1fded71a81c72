// What the module `gpu` exports (gpu_module.hpp).

#include <string>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "backend/device/cuda/calls/cuda_check.hpp"
#include "backend/device/cuda/calls/cuda_gpu.hpp"
#include "backend/device/cuda/gpu_module.hpp"
#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

int count_gpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice) return 0;
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    throw DeviceError(
        driver == 0 ? std::string("there is no NVIDIA driver on this machine")
                    : fmt::format("the NVIDIA driver is for CUDA {}, and this build needs {}: "
                                  "update the driver",
                                  cuda_version(driver), cuda_version(runtime)));
  }
  if (error != cudaSuccess)
    throw DeviceError(
        fmt::format("CUDA: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error)));
  return count;
}

}  // namespace
}  // namespace ddpsim

extern "C" __attribute__((visibility("default"))) const ddpsim::ModuleHeader* ddpsim_gpu_module() {
  static const ddpsim::GpuModule module{
      {DDPSIM_MODULE_BUILD}, ddpsim::count_gpus, ddpsim::make_cuda_gpu};
  return &module.header;
}
