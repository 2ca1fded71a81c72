#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "backend/device/cuda/gpu.hpp"

namespace ddpsim {

/// Where a kernel goes. After each of these, cudaGetLastError tells whether it could be launched.
struct GpuLaunch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
};

// As the functions of the same names in Gpu. None takes a count of 0.
void fill(const GpuLaunch& launch, void* values, std::int64_t count, DType type,
          std::uint64_t seed);
void scale(const GpuLaunch& launch, void* to, const void* from, std::int64_t count, DType type,
           float factor);
void set(const GpuLaunch& launch, void* to, std::int64_t count, DType type, float value);
void combine(const GpuLaunch& launch, void* to, const void* left, const void* right,
             std::int64_t count, DType type, float a, float b);
void move(const GpuLaunch& launch, const void* from, void* to, Bytes traffic, Bytes longest);
void normalise(const GpuLaunch& launch, const void* from, void* to, Bytes traffic, Bytes longest);
void spin(const GpuLaunch& launch, Duration time);
void note_clock(const GpuLaunch& launch, std::uint64_t* into);
void update(const GpuLaunch& launch, const UpdateCall& call);

/// On the host.
void to_floats(const void* values, std::int64_t count, DType type, float* result);

}  // namespace ddpsim
