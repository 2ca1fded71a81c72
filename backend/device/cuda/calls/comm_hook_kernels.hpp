#pragma once

#include "backend/device/cuda/calls/gpu_kernels.hpp"

namespace ddpsim {

// What comm hooks compute, as the functions of the same names in Gpu. None takes a count of 0.
// After each, cudaGetLastError tells whether it could be launched.
void convert(const GpuLaunch& launch, void* to, DType to_type, const void* from, DType from_type,
             std::int64_t count);
/// In one thread block.
void orthogonalize(const GpuLaunch& launch, void* matrix, std::int64_t rows, std::int64_t columns,
                   DType type, float epsilon);
/// The scales must be all zero bits.
void observe(const GpuLaunch& launch, const QuantizeCall& call);
void quantize(const GpuLaunch& launch, const QuantizeCall& call);
void dequantize(const GpuLaunch& launch, const QuantizeCall& call, int ranks, float factor);

/// On the host: as the type keeps them in memory.
void from_floats(const float* values, std::int64_t count, DType type, void* result);

}  // namespace ddpsim
