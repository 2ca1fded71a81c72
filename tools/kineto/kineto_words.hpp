#pragma once

#include <string_view>

/// The words of PyTorch's profiler (Kineto) that both the writer of traces (kineto_host.hpp and its
/// neighbours) and the reader (tools/import/trace_names.hpp) have to know.
namespace ddpsim::kineto {

// Categories of events.
inline constexpr std::string_view cpu_op = "cpu_op", user_annotation = "user_annotation",
                                  kernel = "kernel", gpu_memcpy = "gpu_memcpy";

// Names of events on the host, or their beginnings.
inline constexpr std::string_view profiler_step = "ProfilerStep#",
                                  ddp_forward = "DistributedDataParallel.forward",
                                  optimizer_step = "Optimizer.step#",
                                  evaluate_function = "autograd::engine::evaluate_function: ",
                                  accumulate_grad = "torch::autograd::AccumulateGrad",
                                  reducer = "torch::distributed::reducer::",
                                  copy_bucket_to_grad = "reducer::copy_bucket_to_grad",
                                  record_param_comms = "record_param_comms",
                                  c10d = "c10d::", nccl = "nccl:", gloo = "gloo:", aten = "aten::";

// Keys of an event's arguments.
inline constexpr std::string_view correlation = "correlation", stream = "stream", bytes = "bytes",
                                  collective_name = "Collective name",
                                  message_elements = "In msg nelems", group_size = "Group size",
                                  group_name = "Process Group Name", dtype = "dtype",
                                  input_dims = "Input Dims", input_type = "Input type";

}  // namespace ddpsim::kineto
