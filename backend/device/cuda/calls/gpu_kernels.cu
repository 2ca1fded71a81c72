// Kernels that memory bounds. They read and write 16 bytes at a time where their operands allow it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backend/device/cuda/calls/gpu_kernels.hpp"
#include "backend/device/cuda/calls/gpu_values.cuh"

namespace ddpsim {
namespace {

/// `each(i)` for whole groups of 16 bytes through `pack`, the rest one by one.
template <typename Value>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(Value);
  Value values[size];
};

template <typename Value>
__device__ bool aligned(const Value* a, const Value* b) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
}

template <typename Value>
__global__ void scale_kernel(Value* to, const Value* from, std::int64_t count, float factor) {
  std::int64_t done = 0;
  if (aligned(to, from)) {
    const std::int64_t packs = count / Pack<Value>::size;
    for (std::int64_t i = first_index(); i < packs; i += stride()) {
      Pack<Value> pack = reinterpret_cast<const Pack<Value>*>(from)[i];
      for (Value& value : pack.values) value = from_float<Value>(factor * to_float(value));
      reinterpret_cast<Pack<Value>*>(to)[i] = pack;
    }
    done = packs * Pack<Value>::size;
  }
  for (std::int64_t i = done + first_index(); i < count; i += stride())
    to[i] = from_float<Value>(factor * to_float(from[i]));
}

template <typename Value>
__global__ void combine_kernel(Value* to, const Value* left, const Value* right, std::int64_t count,
                               float a, float b) {
  std::int64_t done = 0;
  if (aligned(to, left) && aligned(to, right)) {
    const std::int64_t packs = count / Pack<Value>::size;
    for (std::int64_t i = first_index(); i < packs; i += stride()) {
      Pack<Value> pack = reinterpret_cast<const Pack<Value>*>(left)[i];
      const Pack<Value> more = reinterpret_cast<const Pack<Value>*>(right)[i];
      for (int k = 0; k < Pack<Value>::size; ++k)
        pack.values[k] =
            from_float<Value>(a * to_float(pack.values[k]) + b * to_float(more.values[k]));
      reinterpret_cast<Pack<Value>*>(to)[i] = pack;
    }
    done = packs * Pack<Value>::size;
  }
  for (std::int64_t i = done + first_index(); i < count; i += stride())
    to[i] = from_float<Value>(a * to_float(left[i]) + b * to_float(right[i]));
}

template <typename Value>
__global__ void set_kernel(Value* to, std::int64_t count, float value) {
  for (std::int64_t i = first_index(); i < count; i += stride()) to[i] = from_float<Value>(value);
}

__global__ void move_kernel(float4* to, const float4* from, std::int64_t packs, std::int64_t room) {
  std::int64_t at = first_index() % room;
  const std::int64_t step = stride() % room;
  for (std::int64_t i = first_index(); i < packs; i += stride()) {
    float4 value = from[at];
    value.x += 1;
    to[at] = value;
    at += step;
    if (at >= room) at -= room;
  }
}

constexpr int row_packs = threads_per_block;  // 1024 values of 4 bytes

/// A block per row: sum of squares, then every value by its root.
__global__ void normalise_kernel(float4* to, const float4* from, std::int64_t rows,
                                 std::int64_t room) {
  __shared__ float sums[threads_per_block / 32];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t at = row % room * row_packs + threadIdx.x;
    float4 value = from[at];
    float sum = value.x * value.x + value.y * value.y + value.z * value.z + value.w * value.w;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0U, sum, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (const float each : sums) sum += each;
    const float scale = rsqrtf(sum / (4 * row_packs) + 1e-5F);
    to[at] = {value.x * scale, value.y * scale, value.z * scale, value.w * scale};
    __syncthreads();
  }
}

__global__ void spin_kernel(std::int64_t nanoseconds) {
  std::uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (static_cast<std::int64_t>(now - begin) < nanoseconds);
}

__global__ void clock_kernel(std::uint64_t* into) {
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(*into));
}

template <typename Value>
__global__ void fill_kernel(Value* values, std::int64_t count, std::uint64_t seed) {
  for (std::int64_t i = first_index(); i < count; i += stride()) {
    // splitmix64
    std::uint64_t x = seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(i);
    x = (x + 0x9E3779B97F4A7C15ULL);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
    values[i] = from_float<Value>(static_cast<float>(x >> 40) * 0x1p-23F - 1.0F);
  }
}

struct Rates {
  float learning = 1e-4F, momentum = 0.9F, decay = 1e-4F, beta1 = 0.9F, beta2 = 0.999F,
        epsilon = 1e-8F;
};

/// The tensors of a call, as a kernel takes them.
struct Tensors {
  UpdatedTensor each[UpdateCall::most_tensors];
  int count;
};

/// Calls `update` with each tensor and the places of it that are this thread's. Small tensors begin
/// in different blocks.
template <typename Update>
__device__ void each_place(const Tensors& tensors, Update update) {
  for (int t = 0; t < tensors.count; ++t) {
    const UpdatedTensor& tensor = tensors.each[t];
    const unsigned block = (blockIdx.x + static_cast<unsigned>(t) * 37) % gridDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(block) * blockDim.x + threadIdx.x;
         i < tensor.count; i += stride())
      update(tensor, i);
  }
}

template <typename Value>
__global__ void sgd_kernel(const __grid_constant__ Tensors tensors, Rates rates) {
  each_place(tensors, [&](const UpdatedTensor& tensor, std::int64_t i) {
    auto* parameter = static_cast<Value*>(tensor.parameter);
    auto* momentum = static_cast<Value*>(tensor.momentum);
    const float value = to_float(parameter[i]);
    const float speed = rates.momentum * to_float(momentum[i]) +
                        to_float(static_cast<const Value*>(tensor.gradient)[i]) +
                        rates.decay * value;
    momentum[i] = from_float<Value>(speed);
    parameter[i] = from_float<Value>(value - rates.learning * speed);
  });
}

template <typename Value>
__global__ void adam_kernel(const __grid_constant__ Tensors tensors, Rates rates, float first,
                            float second, float decay) {
  each_place(tensors, [&](const UpdatedTensor& tensor, std::int64_t i) {
    auto* parameter = static_cast<Value*>(tensor.parameter);
    auto* momentum = static_cast<Value*>(tensor.momentum);
    auto* variance = static_cast<Value*>(tensor.variance);
    const float slope = to_float(static_cast<const Value*>(tensor.gradient)[i]);
    const float value = to_float(parameter[i]);
    const float m = rates.beta1 * to_float(momentum[i]) + (1 - rates.beta1) * slope;
    const float v = rates.beta2 * to_float(variance[i]) + (1 - rates.beta2) * slope * slope;
    momentum[i] = from_float<Value>(m);
    variance[i] = from_float<Value>(v);
    parameter[i] = from_float<Value>(
        value - decay * value - rates.learning * (m * first) / (sqrtf(v * second) + rates.epsilon));
  });
}

}  // namespace

void fill(const GpuLaunch& launch, void* values, std::int64_t count, DType type,
          std::uint64_t seed) {
  with_type(type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    fill_kernel<<<blocks(count, launch.multiprocessors), threads_per_block, 0, launch.stream>>>(
        static_cast<Value*>(values), count, seed);
  });
}

void scale(const GpuLaunch& launch, void* to, const void* from, std::int64_t count, DType type,
           float factor) {
  with_type(type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    scale_kernel<<<blocks(count, launch.multiprocessors), threads_per_block, 0, launch.stream>>>(
        static_cast<Value*>(to), static_cast<const Value*>(from), count, factor);
  });
}

void set(const GpuLaunch& launch, void* to, std::int64_t count, DType type, float value) {
  with_type(type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    set_kernel<<<blocks(count, launch.multiprocessors), threads_per_block, 0, launch.stream>>>(
        static_cast<Value*>(to), count, value);
  });
}

void combine(const GpuLaunch& launch, void* to, const void* left, const void* right,
             std::int64_t count, DType type, float a, float b) {
  with_type(type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    combine_kernel<<<blocks(count, launch.multiprocessors), threads_per_block, 0, launch.stream>>>(
        static_cast<Value*>(to), static_cast<const Value*>(left), static_cast<const Value*>(right),
        count, a, b);
  });
}

void move(const GpuLaunch& launch, const void* from, void* to, Bytes traffic, Bytes longest) {
  constexpr std::int64_t pack = sizeof(float4);
  const std::int64_t packs = std::max<std::int64_t>(1, traffic.count / 2 / pack);
  const std::int64_t room = std::max<std::int64_t>(1, longest.count / 2 / pack);
  move_kernel<<<blocks(packs, launch.multiprocessors), threads_per_block, 0, launch.stream>>>(
      static_cast<float4*>(to), static_cast<const float4*>(from), packs, std::min(packs, room));
}

void normalise(const GpuLaunch& launch, const void* from, void* to, Bytes traffic, Bytes longest) {
  constexpr std::int64_t row = row_packs * static_cast<std::int64_t>(sizeof(float4));
  const std::int64_t rows = std::max<std::int64_t>(1, traffic.count / 2 / row);
  const std::int64_t room = std::max<std::int64_t>(1, longest.count / 2 / row);
  normalise_kernel<<<blocks(rows * threads_per_block, launch.multiprocessors), threads_per_block, 0,
                     launch.stream>>>(static_cast<float4*>(to), static_cast<const float4*>(from),
                                      rows, std::min(rows, room));
}

void spin(const GpuLaunch& launch, Duration time) {
  spin_kernel<<<1, 1, 0, launch.stream>>>(time.count() / 1000);
}

void note_clock(const GpuLaunch& launch, std::uint64_t* into) {
  clock_kernel<<<1, 1, 0, launch.stream>>>(into);
}

void update(const GpuLaunch& launch, const UpdateCall& call) {
  const Rates rates;
  Tensors tensors{};
  std::int64_t longest = 1;
  for (const UpdatedTensor& each : call.tensors) {
    tensors.each[tensors.count++] = each;
    longest = std::max(longest, each.count);
  }
  with_type(call.type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    // Tensors of one block each fill the GPU together.
    const int grid = blocks(longest * tensors.count, launch.multiprocessors);
    if (call.optimizer == Optimizer::sgd) {
      sgd_kernel<Value><<<grid, threads_per_block, 0, launch.stream>>>(tensors, rates);
      return;
    }
    const auto step = static_cast<float>(call.step);
    adam_kernel<Value><<<grid, threads_per_block, 0, launch.stream>>>(
        tensors, rates, 1 / (1 - std::pow(rates.beta1, step)),
        1 / (1 - std::pow(rates.beta2, step)),
        call.optimizer == Optimizer::adam ? 0.0F : rates.learning * rates.decay);
  });
}

void to_floats(const void* values, std::int64_t count, DType type, float* result) {
  with_type(type, [&](auto* none) {
    using Value = std::remove_pointer_t<decltype(none)>;
    const auto* from = static_cast<const Value*>(values);
    for (std::int64_t i = 0; i < count; ++i) result[i] = static_cast<float>(from[i]);
  });
}

}  // namespace ddpsim
