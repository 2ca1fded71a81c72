#include <string>

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/nccl/cuda_check.hpp"
#include "backend/nccl/cuda_gpu.hpp"

namespace ddpsim {

int gpu_count() {
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

GpuLook look_for_gpus() {
  GpuLook look;
  look.problem = "looking for GPUs failed";
  int answer[2];
  if (pipe(answer) != 0) return look;
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = fmt::format("{}", gpu_count());
    } catch (const std::exception& problem) {
      text = problem.what();
    }
    const bool told =
        write(answer[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(told ? 0 : 1);
  }
  close(answer[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got; (got = ::read(answer[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(answer[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (child < 0 || status != 0 || text.empty()) return look;
  look.problem.clear();
  if (text.find_first_not_of("0123456789") != std::string::npos)
    look.problem = text;
  else
    look.count = std::stoi(text);
  if (look.problem.empty() && look.count == 0)
    look.problem = "there is no NVIDIA GPU on this machine";
  return look;
}

}  // namespace ddpsim
