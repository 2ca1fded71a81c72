#pragma once

#include "backend/gloo/memory.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Does the work of a schedule's tasks on the calling thread; every kind but communication, waits
/// and hooks.
///
///     forward, backward   the kernel's GEMM, or a stream over `traffic` bytes; a backward kernel
///                         also writes the gradients it completes
///     copy_in             slice = gradient / divisor       concatenate   bucket = its gradients
///     divide              gradient or bucket /= divisor    copy_out      gradient = slice
///     accumulate          gradient += the micro-batch's
///     optimizer           a real SGD (momentum, weight decay) or Adam(W) update, one loop
///
/// The divisor is Schedule::divisor. A kernel with a measured time and no shape (a workload
/// profile) is stood in for by a loop that takes that much CPU time of this thread.
class Kernels {
 public:
  Kernels(const Workload& workload, Optimizer optimizer, int ranks, Memory& memory)
      : workload_(workload), optimizer_(optimizer), ranks_(ranks), memory_(memory) {}

  void run(const Schedule& schedule, const Task& task);
  /// Call before each step in which the optimizer runs: bias corrections count these steps.
  void begin_step(const Schedule& schedule);
  /// The optimizer's step for the parameters of one bucket, with the gradients in it.
  void update(const Bucket& bucket);

 private:
  void pass(const Task& task, const Kernel& kernel, const KernelBinding& binding);
  void accumulate(const Task& task);
  void copy_in(const Task& task);
  void concatenate(const Schedule& schedule, const Task& task);
  void divide(const Schedule& schedule, const Task& task);
  void fill_buffers(const Schedule& schedule, const Task& task);
  void optimize(const Task& task);
  static float quotient(const Task& task) { return 1.0F / static_cast<float>(task.divisor); }
  void update(std::int32_t parameter, std::span<const float> gradient);

  const Workload& workload_;
  Optimizer optimizer_;
  int ranks_;
  bool updates_in_backward_ = false;  ///< in the step under way
  int steps_ = 0;                     ///< optimizer updates so far, for Adam's bias correction
  Memory& memory_;
};

}  // namespace ddpsim
