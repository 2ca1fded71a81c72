#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "backend/device/cuda/gpu_module.hpp"

namespace ddpsim {

/// With streams 0, 1 and 2.
inline std::unique_ptr<Gpu> gpu() {
  auto made = make_gpu(0, std::chrono::seconds{30});
  for (const GpuStream stream : {0, 1, 2}) made->make_stream(stream);
  return made;
}

/// Relative rounding of one operation.
inline double epsilon(DType type) {
  return type == DType::bf16 ? 0x1p-8 : type == DType::fp16 ? 0x1p-11 : 0x1p-24;
}

struct Values {
  Values(Gpu& gpu, std::int64_t elements, DType type, std::uint64_t seed)
      : memory(gpu.allocate(elements * size_of(type), "values")), count(elements) {
    gpu.fill(memory.get(), count, type, seed);
    host = gpu.read(memory.get(), count, type);
  }
  std::shared_ptr<std::byte> memory;
  std::int64_t count;
  std::vector<float> host;
};

inline void wait_for(Gpu& gpu, int event) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{30};
       !gpu.reached(event);)
    REQUIRE(std::chrono::steady_clock::now() < end);
}

}  // namespace ddpsim
