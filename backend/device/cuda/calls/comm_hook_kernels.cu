// What comm hooks compute. All but the orthogonalisation is bound by memory.

#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/device/cuda/calls/comm_hook_kernels.hpp"
#include "backend/device/cuda/calls/gpu_values.cuh"

namespace ddpsim {
namespace {

template <typename To, typename From>
__global__ void convert_kernel(To* to, const From* from, std::int64_t count) {
  for (std::int64_t i = first_index(); i < count; i += stride())
    to[i] = from_float<To>(to_float(from[i]));
}

constexpr int orthogonalizing_threads = 1024;

/// The sum of the values of all threads of a block, which every thread gets. The order of the
/// additions is the same on every GPU.
__device__ float sum_of_block(float value) {
  __shared__ float sums[orthogonalizing_threads / 32];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0U, value, offset);
  __syncthreads();  // the last sums have been read
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (const float each : sums) value += each;
  return value;
}

/// A thread keeps to its rows, so that columns need no barrier between them.
template <typename Value>
__global__ void orthogonalize_kernel(Value* matrix, std::int64_t rows, std::int64_t columns,
                                     float epsilon) {
  const auto at = [&](std::int64_t row, std::int64_t column) -> Value& {
    return matrix[row * columns + column];
  };
  for (std::int64_t i = 0; i < columns; ++i) {
    float squares = 0;
    for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x)
      squares += to_float(at(row, i)) * to_float(at(row, i));
    // The norm is a number of the matrix's type, as in PyTorch.
    const float norm = to_float(
        from_float<Value>(to_float(from_float<Value>(sqrtf(sum_of_block(squares)))) + epsilon));
    for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x)
      at(row, i) = from_float<Value>(to_float(at(row, i)) / norm);
    for (std::int64_t j = i + 1; j < columns; ++j) {
      float product = 0;
      for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x)
        product += to_float(at(row, i)) * to_float(at(row, j));
      product = sum_of_block(product);
      for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x)
        at(row, j) = from_float<Value>(to_float(at(row, j)) - product * to_float(at(row, i)));
    }
  }
}

/// The largest magnitudes below and above zero of a channel, as bits of a float, where its scale
/// and its zero point will be: numbers that are not negative are in the order of their bits, and
/// what is no number is above all.
template <typename Value>
__global__ void extremes_kernel(const Value* values, std::int64_t count, std::int64_t channel,
                                std::int64_t channels, int* below, int* above) {
  const std::int64_t first = blockIdx.x * channel;
  const std::int64_t end = first + channel < count ? first + channel : count;
  int least = 0, most = 0;
  for (std::int64_t i = first + static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
       i < end; i += static_cast<std::int64_t>(gridDim.y) * blockDim.x) {
    const float value = to_float(values[i]);
    const int magnitude = __float_as_int(fabsf(value));
    if (!(value > 0)) least = max(least, magnitude);
    if (!(value < 0)) most = max(most, magnitude);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    least = max(least, __shfl_xor_sync(~0U, least, offset));
    most = max(most, __shfl_xor_sync(~0U, most, offset));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicMax(below + blockIdx.x, least);
  atomicMax(above + blockIdx.x, most);
}

constexpr float most_code = 255;
constexpr float least_scale = std::numeric_limits<float>::epsilon();

__global__ void scales_kernel(float* scales, float* zeros, std::int64_t channels) {
  for (std::int64_t c = first_index(); c < channels; c += stride()) {
    const float least = -scales[c], most = zeros[c];
    const float scale = fmaxf((most - least) / most_code, least_scale);
    scales[c] = scale;
    zeros[c] = fminf(fmaxf(-rintf(least / scale), 0), most_code);
  }
}

template <typename Value>
__global__ void quantize_kernel(std::uint8_t* codes, const Value* values, std::int64_t count,
                                const float* scales, std::int64_t channel, std::int64_t channels) {
  for (std::int64_t i = first_index(); i < channel * channels; i += stride()) {
    const std::int64_t c = i / channel;
    const float value = i < count ? to_float(values[i]) : 0;
    const float code = rintf(value / scales[c]) + scales[channels + c];
    codes[i] = static_cast<std::uint8_t>(fminf(fmaxf(code, 0), most_code));
  }
}

template <typename Value>
__global__ void dequantize_kernel(Value* values, std::int64_t count, const std::uint8_t* codes,
                                  const float* scales, std::int64_t channel, std::int64_t channels,
                                  int ranks, float factor) {
  for (std::int64_t i = first_index(); i < count; i += stride()) {
    const std::int64_t c = i / channel;
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const float* mine = scales + rank * 2 * channels;
      sum +=
          mine[c] * (static_cast<float>(codes[rank * channel * channels + i]) - mine[channels + c]);
    }
    values[i] = from_float<Value>(sum * factor);
  }
}

}  // namespace

void convert(const GpuLaunch& launch, void* to, DType to_type, const void* from, DType from_type,
             std::int64_t count) {
  with_type(to_type, [&](auto* to_none) {
    with_type(from_type, [&](auto* from_none) {
      using To = std::remove_pointer_t<decltype(to_none)>;
      using From = std::remove_pointer_t<decltype(from_none)>;
      convert_kernel<<<blocks(count, launch.multiprocessors), threads_per_block, 0,
                       launch.stream>>>(static_cast<To*>(to), static_cast<const From*>(from),
                                        count);
    });
  });
}

void orthogonalize(const GpuLaunch& launch, void* matrix, std::int64_t rows, std::int64_t columns,
                   DType type, float epsilon) {
  with_type(type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    orthogonalize_kernel<<<1, orthogonalizing_threads, 0, launch.stream>>>(
        static_cast<Value*>(matrix), rows, columns, epsilon);
  });
}

void observe(const GpuLaunch& launch, const QuantizeCall& call) {
  with_type(call.type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    const dim3 grid(static_cast<unsigned>(call.channels),
                    static_cast<unsigned>(blocks(call.channel / 8, launch.multiprocessors)));
    extremes_kernel<<<grid, threads_per_block, 0, launch.stream>>>(
        static_cast<const Value*>(call.values), call.count, call.channel, call.channels,
        reinterpret_cast<int*>(call.scales), reinterpret_cast<int*>(call.scales + call.channels));
  });
  scales_kernel<<<blocks(call.channels, launch.multiprocessors), threads_per_block, 0,
                  launch.stream>>>(call.scales, call.scales + call.channels, call.channels);
}

void quantize(const GpuLaunch& launch, const QuantizeCall& call) {
  with_type(call.type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    quantize_kernel<<<blocks(call.channel * call.channels, launch.multiprocessors),
                      threads_per_block, 0, launch.stream>>>(
        call.codes, static_cast<const Value*>(call.values), call.count, call.scales, call.channel,
        call.channels);
  });
}

void dequantize(const GpuLaunch& launch, const QuantizeCall& call, int ranks, float factor) {
  with_type(call.type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    dequantize_kernel<<<blocks(call.count, launch.multiprocessors), threads_per_block, 0,
                        launch.stream>>>(static_cast<Value*>(call.values), call.count, call.codes,
                                         call.scales, call.channel, call.channels, ranks, factor);
  });
}

void from_floats(const float* values, std::int64_t count, DType type, void* result) {
  with_type(type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    auto* to = static_cast<Value*>(result);
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Value>(values[i]);
  });
}

}  // namespace ddpsim
