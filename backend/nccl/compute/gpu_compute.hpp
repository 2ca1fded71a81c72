#pragma once

#include "backend/nccl/compute/gpu_optimizer.hpp"

namespace ddpsim {

/// Enqueues the kernels of tasks that compute, on one GPU.
class GpuCompute {
 public:
  /// `ranks`: to average over. All must outlive this object.
  GpuCompute(Gpu& gpu, const GpuMemory& memory, GpuTraffic& traffic, GpuOptimizer& optimizer,
             int ranks)
      : gpu_(gpu),
        memory_(memory),
        traffic_(traffic),
        optimizer_(optimizer),
        mean_(1.0F / static_cast<float>(ranks)) {}

  /// On the task's stream. Not those of a comm hook.
  void run(const Schedule& schedule, const Task& task);

 private:
  void pass(const Task& task, const Kernel& kernel, const GradientBinding& binding);
  void multiply(const Task& task, const Kernel& kernel, std::int32_t parameter);
  void copy_in(const Schedule& schedule, const Task& task);
  void concatenate(const Schedule& schedule, const Task& task);
  void divide(const Schedule& schedule, const Task& task);
  void copy_buffers(const Schedule& schedule, const Task& task);
  float quotient(const Schedule& schedule, const Task& task) const;
  void scale(const Task& task, std::int32_t parameter, std::byte* to, const std::byte* from,
             float factor);

  Gpu& gpu_;
  const GpuMemory& memory_;
  GpuTraffic& traffic_;
  GpuOptimizer& optimizer_;
  float mean_;  ///< 1 / ranks
};

}  // namespace ddpsim
