#include "backend/device/cuda/calls/cuda_check.hpp"

#include <fmt/format.h>

#include "backend/device_error.hpp"

namespace ddpsim {

void fail_call(const char* call, const char* file, int line, const std::string& what) {
  throw DeviceError(fmt::format("{}: {} ({}:{})", call, what, file, line));
}

void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  fail_call(call, file, line,
            error == cudaErrorNoKernelImageForDevice
                ? std::string("this build has no code for this GPU: configure with "
                              "-DCMAKE_CUDA_ARCHITECTURES=native and build again")
                : fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error)));
}

void check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) fail_call(call, file, line, cublasGetStatusString(status));
}

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

}  // namespace ddpsim
