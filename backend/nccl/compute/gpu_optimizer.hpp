#pragma once

#include <vector>

#include "backend/nccl/compute/gpu_traffic.hpp"

namespace ddpsim {

/// The optimizer on one GPU: the real update, and then kernels that move what PyTorch's many small
/// ones do beyond that.
class GpuOptimizer {
 public:
  /// All must outlive this object.
  GpuOptimizer(Gpu& gpu, const GpuMemory& memory, GpuTraffic& traffic, Optimizer optimizer);

  /// An optimizer task, on its stream.
  void run(const Task& task);
  /// For the parameters of the task's bucket, on the task's stream.
  void update_bucket(const Schedule& schedule, const Task& task);

 private:
  void update(std::int32_t parameter, Stream stream);
  void update_all();
  int passes() const { return keeps_variance(optimizer_) ? 7 : 5; }
  const Workload& workload() const { return memory_.workload(); }

  Gpu& gpu_;
  const GpuMemory& memory_;
  GpuTraffic& traffic_;
  Optimizer optimizer_;
  std::vector<Kernel> kernels_;
  int steps_ = 0;  ///< so far, for Adam's bias correction
};

}  // namespace ddpsim
