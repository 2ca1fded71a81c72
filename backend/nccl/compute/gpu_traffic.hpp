#pragma once

#include "backend/nccl/compute/gpu_memory.hpp"

namespace ddpsim {

inline constexpr Bytes shortest_stream{8 << 10};  // one row
inline constexpr Bytes longest_stream{256 << 20};

/// The seed of operand `number` of a task's kernel: another for each kernel of each micro-batch.
std::uint32_t operand_seed(const Task& task, std::uint32_t number);

/// Kernels that move bytes through a GPU's memory and no more.
class GpuTraffic {
 public:
  GpuTraffic(Gpu& gpu, const GpuMemory& memory) : gpu_(gpu), memory_(memory) {}

  /// `traffic` in as many kernels as the host enqueues for it; rows only on the compute stream.
  enum class Motion { elementwise, rows };
  void move(Stream stream, Bytes traffic, int launches, std::uint32_t seed,
            Motion motion = Motion::elementwise);

 private:
  Gpu& gpu_;
  const GpuMemory& memory_;
};

}  // namespace ddpsim
