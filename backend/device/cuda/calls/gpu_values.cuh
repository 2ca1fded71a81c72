#pragma once

// What all kernels share: numbers of the three types, computed with as float, and loops over many
// of them.

#include <algorithm>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "model/base/dtype.hpp"

namespace ddpsim {

__device__ inline float to_float(float value) {
  return value;
}
__device__ inline float to_float(__half value) {
  return __half2float(value);
}
__device__ inline float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
template <typename Value>
__device__ Value from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half(value);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}

inline constexpr int threads_per_block = 256;
inline constexpr int blocks_per_multiprocessor = 8;

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// `call` with a null pointer of the type, which is one that GPUs compute with here.
template <typename Call>
void with_type(DType type, Call call) {
  switch (type) {
    case DType::bf16:
      return call(static_cast<__nv_bfloat16*>(nullptr));
    case DType::fp16:
      return call(static_cast<__half*>(nullptr));
    case DType::fp32:
    case DType::tf32:
    case DType::fp64:
    case DType::complex64:
    case DType::complex128:
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      break;
  }
  call(static_cast<float*>(nullptr));
}

inline int blocks(std::int64_t count, int multiprocessors) {
  const std::int64_t needed = (count + threads_per_block - 1) / threads_per_block;
  const std::int64_t most = static_cast<std::int64_t>(blocks_per_multiprocessor) * multiprocessors;
  return static_cast<int>(std::clamp<std::int64_t>(needed, 1, most));
}

}  // namespace ddpsim
