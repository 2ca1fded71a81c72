#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/scenario/scenario.hpp"
#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

// What PyTorch's profiler (Kineto) calls the tasks of a training step. The words that a reader of
// traces needs too are in kineto_words.hpp.

/// A kernel or copy of a device.
struct DeviceName {
  std::string name;      ///< "at::native::vectorized_elementwise_kernel<divide>"
  std::string category;  ///< "kernel" or "gpu_memcpy"
  std::string launch;    ///< the call that launches it: "cudaLaunchKernel"
};
DeviceName device_name(const Scenario& scenario, const Training& training, const program::Job& job,
                       const program::Task& task);

/// Is it a copy that changes nothing? (One into a bucket may divide on the way.)
bool is_plain_copy(const program::Job& job, const program::Task& task);

/// The operator of the host that launches a task: "aten::div_".
std::string operator_name(const Scenario& scenario, const Training& training,
                          const program::Job& job, const program::Task& task);

/// "FSDP::all_gather (layers.3)": the range of fully_shard that a task of a named unit belongs to;
/// of the root it has no name behind, and of FullyShardedDataParallel no unit has. "": it belongs
/// to none.
std::string unit_range(const Training& training, const program::Job& job,
                       const program::Task& task);

/// "Optimizer.step#AdamW.step"
std::string optimizer_annotation(Optimizer optimizer);

/// A collective as the profiler tells it.
struct CollectiveName {
  std::string word;    ///< "all_reduce", as in "nccl:all_reduce" and "gloo:all_reduce"
  std::string call;    ///< "c10d::allreduce_"
  std::string name;    ///< "allreduce", its "Collective name"
  std::string kernel;  ///< "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"
  std::string dtype;   ///< "Float"
  std::int64_t elements_in = 0, elements_out = 0;
  int ranks = 1, stride = 1;                         ///< of its group: from one rank to the next
  std::string group = "0", group_is = "default_pg";  ///< its process group's name and description
};
CollectiveName collective_name(const Scenario& scenario, const program::Job& job,
                               const program::Task& task, const CollectiveChoice& choice);

/// "float", as the profiler writes a tensor's type.
std::string_view tensor_type(DType type);

}  // namespace ddpsim
