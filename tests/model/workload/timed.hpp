#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/cost/cost_model.hpp"
#include "model/parallel/training.hpp"
#include "model/parallel/write/step_works.hpp"

/// Workloads and clusters whose every cost is chosen, for tests that count by hand.
namespace ddpsim::timed {

/// A kernel that takes `time`, whatever the device.
inline Kernel kernel(Duration time, int launches = 1) {
  Kernel result;
  result.name = "kernel";
  result.launches = launches;
  result.time = time;
  return result;
}

/// A parameter of fp32 elements; its gradient is complete after backward kernel `ready_after` of
/// `layer`.
inline Parameter parameter(std::string name, Bytes size, int layer, int ready_after) {
  return {std::move(name), {size.count / 4}, DType::fp32, layer, ready_after};
}

/// A device of round numbers: 100 SMs, 1 TB/s of memory, 10 TFLOP/s, no CUDA, nothing lost.
inline Device round_device() {
  Device device;
  device.name = "round";
  device.multiprocessors = 100;
  device.memory_bandwidth = gigabytes_per_second(1000);
  device.memory_efficiency = 1;
  device.peak.fill(teraflops_per_second(10));
  device.gemm_efficiency.fill(1);
  return device;
}

/// `ranks` of those on a plain link, without launch costs and without interference.
inline Cluster ring(int ranks, Duration latency, Bandwidth bandwidth) {
  Cluster cluster;
  cluster.device = round_device();
  cluster.ranks_per_node = ranks;
  cluster.intra_node.latency = latency;
  cluster.intra_node.bandwidth = bandwidth;
  cluster.interference = FixedInterference{};
  return cluster;
}

/// That cluster, where every all-reduce takes `time`.
inline Cluster constant(int ranks, Duration time) {
  Cluster cluster = ring(ranks, Duration::zero(), gigabytes_per_second(100));
  cluster.intra_node.all_reduce = {{Bytes{1}, time}, {GiB, time}};
  return cluster;
}

/// Eight GPUs on an NVLink switch: NCCL's law of collectives, the formulas of interference.
inline Cluster eight_gpus() {
  using namespace std::chrono_literals;
  Cluster cluster = ring(8, 3us, gigabytes_per_second(450));
  cluster.device.compute_capability = 90;
  cluster.device.multiprocessors = 132;
  cluster.device.peak.fill(teraflops_per_second(400));
  cluster.intra_node.kind = LinkKind::nvlink;
  cluster.intra_node.nvswitch = true;
  cluster.interference.reset();
  cluster.launch = {6us, 10us, 5us};
  return cluster;
}

/// Copies, divisions and accumulations take no time: only what a test says does.
inline void free_copies(CostModel& costs) {
  costs.copy_factor = 0;
}

inline Training training_of(Strategy strategy) {
  Training training;
  training.strategy = strategy;
  return training;
}

/// What steps of the workload consist of, without an optimizer but the workload's own.
inline StepWorks works_of(const Workload& workload, const Cluster& cluster) {
  return StepWorks(workload, cluster, Optimizer::none);
}

/// The four gradients of DDP's in-order example (PyTorch's reducer launches buckets in index
/// order): from the start of backward, parameter 0 is ready at 30 ms, 1 at 10, 2 at 40, 3 at 50;
/// backward ends at 55. There is no forward pass, so the step begins where backward does.
inline Workload in_order_example() {
  using namespace std::chrono_literals;
  Workload workload;
  workload.name = "in order";
  Layer& layer = workload.layers.emplace_back();
  layer.name = "only";
  for (const Duration time : {10ms, 20ms, 10ms, 10ms, 5ms}) layer.backward.push_back(kernel(time));
  workload.parameters = {parameter("a", 4 * KiB, 0, 1), parameter("b", 4 * KiB, 0, 0),
                         parameter("c", 4 * KiB, 0, 2), parameter("d", 4 * KiB, 0, 3)};
  return workload;
}

/// `layers` alike, of `forward` and `backward` time and one parameter each.
inline Workload chain(int layers, Duration forward, Duration backward, Bytes size) {
  Workload workload;
  workload.name = "chain";
  for (int i = 0; i < layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    workload.layers.push_back({name, {kernel(forward)}, {kernel(backward)}});
    workload.parameters.push_back(parameter(name + ".weight", size, i, 0));
  }
  return workload;
}

}  // namespace ddpsim::timed
