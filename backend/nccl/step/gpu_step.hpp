#pragma once

#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/nccl/comm_hook/gpu_hook_data.hpp"
#include "backend/nccl/compute/gpu_compute.hpp"
#include "backend/nccl/step/gpu_background.hpp"
#include "backend/nccl/step/gpu_step_clock.hpp"

namespace ddpsim {

/// What a rank carries out tasks with, on one GPU.
struct GpuDevices {
  Gpu& gpu;
  GpuWaiter& waiter;
  GpuStepClock& clock;
  Communicator& communicator;
  GpuCollectives& collectives;
  GpuMemory& memory;
  GpuCompute& compute;
  GpuHookData& hook_data;
};

/// Carries out one step on a GPU: the host thread walks the schedule in order and enqueues its
/// tasks.
class GpuStep {
 public:
  /// Makes room for the step. `profile`: collectives start and end when NCCL's profiler interface
  /// says. All must outlive this object.
  GpuStep(const GpuDevices& devices, const Schedule& schedule, const RunOptions& options,
          bool profile);

  /// See Backend::run.
  RankRun run();

 private:
  void walk();
  void execute(std::uint32_t index, TaskTimes& times);
  void enqueue(const Task& task);
  void enqueue_in_order(std::uint32_t index);
  void send(const Task& task);
  void stream_waits_for(std::uint32_t earlier, Stream stream);
  void keep_near(const Task& task);
  void await_all();
  void await_last(Stream stream);
  void learn_starts(Instant computed_at);

  GpuDevices devices_;
  const Schedule& schedule_;
  const RunOptions& options_;
  bool profile_;
  std::uint32_t tasks_;
  GpuBackground background_;
  std::vector<std::string> ranges_;  ///< [task] for profilers
  int ahead_ = 0;                    ///< entries enqueued since the last mark
  int next_mark_ = 0;
  RankRun run_;
};

}  // namespace ddpsim
