#pragma once

#include "model/cluster/cluster.hpp"
#include "model/workload/caller.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What a kernel costs the host and the device.
struct KernelCost {
  Duration host{};  ///< to enqueue all of its launches
  Duration work{};  ///< on the device, alone
  /// The share of `work` that cannot start before the last launch is enqueued.
  Duration last_launch{};
  std::int32_t launches = 1;
  float memory_fraction = 0;  ///< how much of it memory bandwidth bounds: 0 arithmetic, 1 memory
};

/// Host time of an operation, in bare launches, by who enqueues it.
///
/// Eager PyTorch spends far more on an operation than the 6 us of a launch: in the forward pass of
/// Python modules 28 us (module call, dispatcher, autograd node), in the backward pass, driven from
/// C++, 24 us, in a Python loop without autograd about 12 us. Those are the floors of small models
/// in a published single-GPU table: 1.68 ms forward and 2.39 ms backward per transformer block
/// (means of 12 and 24 blocks at sequence 128 and 256, where the length makes no difference) of 60
/// and 100 operations, and about 170 us per tensor for the 14 operations of the course's AdamW.
/// They hold where kernels are not known by class: of profiles, of accumulated gradients, of
/// devices without laws. Expressed in launches, so that `cluster.launch` scales them. Source:
/// github:damek/cs336-assignment2-systems@749e968: outputs/csv/2025-07-28_table1.1.2.csv and
/// outputs/nsys_report.md; no row of it is a data-parallel run.
double launches_per_operation(Caller caller);

/// Device time of one kernel: as it was measured (`kernel.time`); or by the law of its class of
/// operation (`kernel.by_class`), of which the host's time is that of a host where a launch takes
/// 6 us, and in proportion to `launch`; or else, of devices whose kernels run on the host thread
/// and of kernels that only stream (copies, optimizers, buckets), by a roofline:
///
///     GEMM     max(2 m n k batch / (peak x efficiency), traffic / bandwidth)
///     others   traffic / bandwidth
///
/// plus 3.2 us of ramp and gap per launch (none on a synchronous device); bandwidth is peak x
/// memory_efficiency.
/// Throws std::invalid_argument if the device has no peak for the kernel's type.
KernelCost kernel_cost(const Kernel& kernel, const Device& device, Duration launch, Caller caller);

/// A kernel that reads or writes `bytes` in all.
KernelCost streaming_cost(Bytes bytes, int launches, const Device& device, Duration launch,
                          Caller caller);

}  // namespace ddpsim
