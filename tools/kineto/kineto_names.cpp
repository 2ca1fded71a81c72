// The names were taken from traces that PyTorch 2 wrote on A100s, and from what issues them:
// torch/csrc/distributed/c10d/reducer.cpp (RECORD_FUNCTION), torch/optim/optimizer.py
// (profile_hook_step), ProcessGroupNCCL.cpp and ParamCommsUtils.cpp. NCCL builds a kernel for each
// collective and type only with the LL protocol, and for rings and trees, and runs all other
// choices in these (NCCL 2.19 and later, src/device/generate.py).

#include "tools/kineto/kineto_names.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/parallel/passes_of.hpp"
#include "model/timeline/port_bytes.hpp"
#include "tools/kineto/kineto_words.hpp"

namespace ddpsim {
namespace {

/// A number format as PyTorch's collectives, its tensors and NCCL's kernels call it.
struct TypeName {
  std::string_view dtype, tensor, kernel;
  std::int64_t bytes;
};
constexpr TypeName whole_numbers{"Int", "int", "u32", 4},
    long_numbers{"Long", "long int", "u64", 8}, codes{"Byte", "unsigned char", "u8", 1};

constexpr TypeName type_name(DType type) {
  switch (type) {
    case DType::fp32:
    case DType::tf32:
      break;
    case DType::bf16:
      return {"BFloat16", "c10::BFloat16", "bf16", 2};
    case DType::fp16:
      return {"Half", "c10::Half", "f16", 2};
    case DType::fp64:
      return {"Double", "double", "f64", 8};
    case DType::complex64:  // sent as pairs of real numbers (ProcessGroupNCCL.cpp, view_as_real)
      return {"Float", "c10::complex<float>", "f32", 4};
    case DType::complex128:
      return {"Double", "c10::complex<double>", "f64", 8};
    case DType::fp8_e4m3:
      return {"Float8_e4m3fn", "c10::Float8_e4m3fn", "f8e4m3", 1};
    case DType::fp8_e5m2:
      return {"Float8_e5m2", "c10::Float8_e5m2", "f8e5m2", 1};
  }
  return {"Float", "float", "f32", 4};
}

DType first_type(const Scenario& scenario) {
  const std::vector<Parameter>& parameters = scenario.workload.parameters;
  return parameters.empty() ? DType::fp32 : parameters.front().dtype;
}

/// What a comm hook sends that is no numbers are bytes, which its buffers hold as fp8.
TypeName type_of_hooks(const program::Job& job, const program::Collective& sent) {
  const DType type = job.buffers[sent.from.buffer].type;
  return type == DType::fp8_e4m3 ? codes : type_name(type);
}

TypeName message_type(const Scenario& scenario, const program::Job& job,
                      const program::Task& task) {
  const auto& [action, origin] = job.deed_of(task);
  const Message message = job.works[task.work].message;
  const auto& sent = std::get<program::Collective>(action);
  if (origin.label != 0) return type_of_hooks(job, sent);
  const program::Buffer& input = job.buffers[sent.from.buffer];
  const bool is_of_unit = origin.group != nobody && !job.groups[at(origin.group)].name.empty();
  if (is_of_unit) return type_name(input.type);
  if (origin.group != nobody) {
    const std::vector<std::int32_t>& parameters = job.groups[at(origin.group)].parameters;
    const DType type = parameters.empty()
                           ? first_type(scenario)
                           : scenario.workload.parameters[at(parameters.front())].dtype;
    const bool numbers = message == Message::sparse_shape || message == Message::sparse_indices;
    return numbers ? long_numbers : type_name(type);
  }
  switch (message) {
    case Message::buffers:
    case Message::own:
    case Message::norm:
      return type_name(DType::fp32);
    case Message::gradients:
    case Message::parameters:
    case Message::sparse_values:
      return type_name(first_type(scenario));
    case Message::sparse_shape:
    case Message::sparse_indices:
      return long_numbers;
    case Message::bucket_indices:
    case Message::bucket_lengths:
    case Message::used_map:
    case Message::active_ranks:
    case Message::early_end:
    case Message::buffer_source:
    case Message::will_sync:
      return whole_numbers;
  }
  return whole_numbers;
}

struct Words {
  std::string_view word, call, name, kernel;
};

constexpr Words words_of(CollectiveOperation collective) {
  switch (collective) {
    case CollectiveOperation::broadcast:
      return {"broadcast", "c10d::broadcast_", "broadcast", "Broadcast"};
    case CollectiveOperation::all_gather:
      return {"_all_gather_base", "c10d::_allgather_base_", "_allgather_base", "AllGather"};
    case CollectiveOperation::reduce_scatter:
      return {"_reduce_scatter_base", "c10d::_reduce_scatter_base_", "_reduce_scatter_base",
              "ReduceScatter"};
    case CollectiveOperation::all_reduce:
      break;
  }
  return {"all_reduce", "c10d::allreduce_", "allreduce", "AllReduce"};
}

constexpr bool sums(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter;
}

const Kernel* kernel_of(const Scenario& scenario, const Training& training, const program::Job& job,
                        const program::Task& task) {
  const program::Origin& origin = job.deed_of(task).origin;
  if (origin.layer == nobody || origin.kernel == nobody) return nullptr;
  const Layer& layer = passes_of(scenario.workload, training).layers[at(origin.layer)];
  const Operation operation = operation_of(job, task);
  if (operation == Operation::forward) return &layer.forward[at(origin.kernel)];
  if (operation == Operation::backward) return &layer.backward[at(origin.kernel)];
  return nullptr;
}

constexpr std::string_view root_unit = "the root";

/// What torch's fully_shard calls the range of the profiler that a task is in.
std::string_view range_of(std::string_view label, Operation operation,
                          const program::Action& action) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> labels{
      {{"pre-forward", "FSDP::pre_forward"},
       {"post-forward", "FSDP::post_forward"},
       {"pre-backward", "FSDP::pre_backward"},
       {"post-backward", "FSDP::post_backward_reshard"},
       {"all-gather copy-in", "FSDP::all_gather"},
       {"all-gather cast", "FSDP::all_gather"},
       {"all-gather copy-out", "FSDP::all_gather_copy_out"},
       {"reduce-scatter copy-in", "FSDP::post_backward_reduce"},
       {"reduce-scatter cast", "FSDP::post_backward_reduce"}}};
  for (const auto& [of_task, range] : labels)
    if (label == of_task) return range;
  if (!label.empty()) return "";
  if (std::holds_alternative<program::Wait>(action)) return "FSDP::post_backward_rs_wait";
  return operation == Operation::all_gather ? "FSDP::all_gather" : "FSDP::post_backward_reduce";
}

/// The same of FullyShardedDataParallel, which names no unit.
std::string_view range_of_fsdp1(std::string_view label, Operation operation) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> labels{
      {{"pre-forward", "FullyShardedDataParallel._pre_forward"},
       {"post-forward", "FullyShardedDataParallel._post_forward"},
       {"pre-backward", "FullyShardedDataParallel._pre_backward_hook"},
       {"post-backward", "FullyShardedDataParallel._post_backward_hook"},
       {"reduce-scatter cast", "FullyShardedDataParallel._post_backward_hook"},
       {"reduce-scatter padding", "FullyShardedDataParallel._post_backward_hook"}}};
  for (const auto& [of_task, range] : labels)
    if (label == of_task) return range;
  const bool reduces = operation == Operation::reduce_scatter || operation == Operation::divide ||
                       operation == Operation::all_reduce;
  return label.empty() && reduces ? "FullyShardedDataParallel._post_backward_hook" : "";
}

DeviceName copy_name(std::string_view from_to) {
  return {fmt::format("Memcpy {}", from_to), std::string(kineto::gpu_memcpy), "cudaMemcpyAsync"};
}

}  // namespace

bool is_plain_copy(const program::Job& job, const program::Task& task) {
  const Operation operation = operation_of(job, task);
  if (operation != Operation::copy_in) return operation == Operation::copy_out;
  const auto* scale = std::get_if<program::Scale>(&job.deed_of(task).action);
  return scale != nullptr && scale->factor == 1;
}

DeviceName device_name(const Scenario& scenario, const Training& training, const program::Job& job,
                       const program::Task& task) {
  const Operation operation = operation_of(job, task);
  const auto kernel = [](std::string name) {
    return DeviceName{std::move(name), std::string(kineto::kernel), "cudaLaunchKernel"};
  };
  if (const Kernel* own = kernel_of(scenario, training, job, task)) return kernel(own->name);
  if (operation == Operation::copy_to_host) return copy_name("DtoH (Device -> Pinned)");
  if (operation == Operation::copy_to_device) return copy_name("HtoD (Pinned -> Device)");
  if (is_plain_copy(job, task)) return copy_name("DtoD (Device -> Device)");
  const std::string_view does = name_of(operation);
  switch (operation) {
    case Operation::optimizer:
      return kernel(scenario.optimizer == Optimizer::adamw_loop
                        ? "at::native::vectorized_elementwise_kernel<optimizer>"
                        : "at::native::multi_tensor_apply_kernel<optimizer>");
    case Operation::concatenate:
      return kernel("at::native::CatArrayBatchedCopy<concatenate>");
    case Operation::multiply:
      return kernel(job.works[task.work].gemm ? "gemm" : std::string(does));
    case Operation::forward:
    case Operation::backward:
    case Operation::accumulate:
    case Operation::hook:
    case Operation::copy_in:
    case Operation::all_reduce:
    case Operation::wait:
    case Operation::divide:
    case Operation::copy_out:
    case Operation::broadcast:
    case Operation::search_unused:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
    case Operation::gradient_hook:
    case Operation::module_hook:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::cast:
    case Operation::correct:
    case Operation::pack:
    case Operation::draw:
    case Operation::orthogonalize:
    case Operation::quantize:
    case Operation::dequantize:
    case Operation::select:
    case Operation::own_kernel:
    case Operation::synchronize:
    case Operation::outside:
    case Operation::meet:
    case Operation::pause:
    case Operation::all_to_all:
    case Operation::send_receive:
    case Operation::unit_hook:
      break;
  }
  return kernel(fmt::format("at::native::vectorized_elementwise_kernel<{}>", does));
}

std::string operator_name(const Scenario& scenario, const Training& training,
                          const program::Job& job, const program::Task& task) {
  const Operation operation = operation_of(job, task);
  if (const Kernel* own = kernel_of(scenario, training, job, task))
    return fmt::format("{}{}", kineto::aten, own->name);
  if (operation == Operation::pack && !unit_range(training, job, task).empty()) {
    if (training.is_fsdp1()) return "aten::constant_pad_nd";
    const program::Action& action = job.deed_of(task).action;
    return std::holds_alternative<program::Chunk>(action)     ? "fsdp::chunk_cat"
           : std::holds_alternative<program::Unchunk>(action) ? "fsdp::split_with_sizes_copy"
                                                              : "fsdp::all_gather_copy_in";
  }
  switch (operation) {
    case Operation::copy_in:
      return fmt::format("{}{}", kineto::reducer, is_plain_copy(job, task) ? "copy_" : "mul_out");
    case Operation::copy_out:
      return job.groups.size() == 1 && job.deed_of(task).origin.group == nobody
                 ? "aten::copy_"
                 : fmt::format("torch.distributed.ddp.{}", kineto::copy_bucket_to_grad);
    case Operation::copy_to_host:
    case Operation::copy_to_device:
      return "aten::copy_";
    case Operation::divide:
      return "aten::div_";
    case Operation::concatenate:
      return "aten::cat";
    case Operation::accumulate:
      return "aten::add_";
    case Operation::multiply:
      return "aten::mm";
    case Operation::forward:
    case Operation::backward:
    case Operation::hook:
    case Operation::all_reduce:
    case Operation::wait:
    case Operation::broadcast:
    case Operation::search_unused:
    case Operation::optimizer:
    case Operation::gradient_hook:
    case Operation::module_hook:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::cast:
    case Operation::correct:
    case Operation::pack:
    case Operation::draw:
    case Operation::orthogonalize:
    case Operation::quantize:
    case Operation::dequantize:
    case Operation::select:
    case Operation::own_kernel:
    case Operation::synchronize:
    case Operation::outside:
    case Operation::meet:
    case Operation::pause:
    case Operation::all_to_all:
    case Operation::send_receive:
    case Operation::unit_hook:
      break;
  }
  return fmt::format("{}{}", kineto::aten, name_of(operation));
}

std::string unit_range(const Training& training, const program::Job& job,
                       const program::Task& task) {
  const auto& [action, origin] = job.deed_of(task);
  if (origin.group == nobody || job.groups[at(origin.group)].name.empty()) return "";
  const std::string label = origin.label == 0 ? "" : job.labels[at(origin.label)];
  if (training.is_fsdp1())
    return std::string(range_of_fsdp1(label, job.works[task.work].operation));
  const std::string_view range = range_of(label, job.works[task.work].operation, action);
  if (range.empty()) return "";
  const std::string& unit = job.groups[at(origin.group)].name;
  return unit == root_unit ? std::string(range) : fmt::format("{} ({})", range, unit);
}

std::string optimizer_annotation(Optimizer optimizer) {
  const std::string_view name = [&]() -> std::string_view {
    switch (optimizer) {
      case Optimizer::sgd:
      case Optimizer::sgd_plain:
        return "SGD";
      case Optimizer::adam:
        return "Adam";
      case Optimizer::adamw:
      case Optimizer::adamw_fused:
      case Optimizer::adamw_loop:
        return "AdamW";
      case Optimizer::lamb:
        return "FusedLAMB";
      case Optimizer::adafactor:
        return "Adafactor";
      case Optimizer::muon:
        return "Muon";
      case Optimizer::rmsprop:
        return "RMSprop";
      case Optimizer::novograd:
        return "FusedNovoGrad";
      case Optimizer::lion:
        return "Lion";
      case Optimizer::adam_8bit:
        return "Adam8bit";
      case Optimizer::none:
        break;
    }
    return "Optimizer";
  }();
  return fmt::format("{}{}.step", kineto::optimizer_step, name);
}

CollectiveName collective_name(const Scenario& scenario, const program::Job& job,
                               const program::Task& task, const CollectiveChoice& choice) {
  const Work& work = job.works[task.work];
  const TypeName type = message_type(scenario, job, task);
  const Words words = words_of(collective_of(work.operation));
  CollectiveName named;
  named.word = words.word;
  named.call = words.call;
  named.name = words.name;
  named.dtype = type.dtype;
  named.ranks = ranks_of(job, work);
  named.stride = work.stride;
  const program::Origin& origin = job.deed_of(task).origin;
  const bool of_unit = origin.group != nobody && !job.groups[at(origin.group)].name.empty();
  const std::int16_t communicator = program::communicator_of(job.deed_of(task).action);
  if (of_unit && at(communicator) < job.communicators.size() &&
      (communicator > 0 || named.ranks < static_cast<int>(job.ranks()))) {
    named.group = std::to_string(communicator + 1);
    named.group_is = work.stride > 1 ? "mesh_replicate" : "mesh_shard";
  }
  named.elements_in = named.elements_out = work.payload.count / type.bytes;
  if (work.operation == Operation::all_gather) named.elements_out *= named.ranks;
  if (work.operation == Operation::reduce_scatter) named.elements_out /= named.ranks;
  const bool tree =
      choice.algorithm == NcclAlgorithm::tree && work.operation == Operation::all_reduce;
  named.kernel = fmt::format(
      "ncclDevKernel_{}_{}{}_LL(ncclDevKernelArgsStorage<4096ul>)", words.kernel,
      sums(work.operation) ? fmt::format("Sum_{}_", type.kernel) : "", tree ? "TREE" : "RING");
  return named;
}

std::string_view tensor_type(DType type) {
  return type_name(type).tensor;
}

}  // namespace ddpsim
