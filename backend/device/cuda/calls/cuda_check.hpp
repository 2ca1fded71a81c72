#pragma once

#include <string>

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace ddpsim {

/// Throws DeviceError: what was called, what went wrong, and where in the source.
[[noreturn]] void fail_call(const char* call, const char* file, int line, const std::string& what);

// Throw DeviceError unless the call succeeded.
void check(cudaError_t error, const char* call, const char* file, int line);
void check(cublasStatus_t status, const char* call, const char* file, int line);

#define CHECKED(call) check(call, #call, __FILE_NAME__, __LINE__)

/// "13.0" of CUDA's number for a version.
std::string cuda_version(int number);

}  // namespace ddpsim
