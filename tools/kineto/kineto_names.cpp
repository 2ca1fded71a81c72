// The names were taken from traces that PyTorch 2 wrote on A100s, and from what issues them:
// torch/csrc/distributed/c10d/reducer.cpp (RECORD_FUNCTION), torch/optim/optimizer.py
// (profile_hook_step), ProcessGroupNCCL.cpp and ParamCommsUtils.cpp. NCCL builds a kernel for each
// collective and type only with the LL protocol, and for rings and trees, and runs all other
// choices in these (NCCL 2.19 and later, src/device/generate.py).

#include "tools/kineto/kineto_names.hpp"

#include <fmt/format.h>

#include "model/base/index.hpp"
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

TypeName message_type(const Scenario& scenario, const Schedule& schedule, const Task& task) {
  if (task.bucket != nobody) {
    const Bucket& bucket = schedule.buckets[at(task.bucket)];
    if (task.step != nobody) {
      const CommStep& step = bucket.steps[at(task.step)];
      return step.action == CommAction::gather_codes ? codes : type_name(step.type);
    }
    const DType type = bucket.parameters.empty()
                           ? first_type(scenario)
                           : scenario.workload.parameters[at(bucket.parameters.front())].dtype;
    const Message message = schedule.work_of(task).message;
    const bool numbers = message == Message::sparse_shape || message == Message::sparse_indices;
    return numbers ? long_numbers : type_name(type);
  }
  switch (schedule.work_of(task).message) {
    case Message::buffers:
    case Message::own:
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

const Kernel* kernel_of(const Scenario& scenario, const Task& task) {
  if (task.layer == nobody || task.kernel == nobody) return nullptr;
  const Layer& layer = scenario.workload.layers[at(task.layer)];
  if (task.operation == Operation::forward) return &layer.forward[at(task.kernel)];
  if (task.operation == Operation::backward) return &layer.backward[at(task.kernel)];
  return nullptr;
}

DeviceName copy_name(std::string_view from_to) {
  return {fmt::format("Memcpy {}", from_to), std::string(kineto::gpu_memcpy), "cudaMemcpyAsync"};
}

/// A copy into a bucket divides on the way, unless there is nothing to divide by.
bool plain_copy(const Task& task) {
  return task.operation == Operation::copy_out ||
         (task.operation == Operation::copy_in && task.divisor == 1);
}

}  // namespace

DeviceName device_name(const Scenario& scenario, const Schedule& schedule, const Task& task) {
  const auto kernel = [](std::string name) {
    return DeviceName{std::move(name), std::string(kineto::kernel), "cudaLaunchKernel"};
  };
  if (const Kernel* own = kernel_of(scenario, task)) return kernel(own->name);
  if (task.operation == Operation::copy_to_host) return copy_name("DtoH (Device -> Pinned)");
  if (task.operation == Operation::copy_to_device) return copy_name("HtoD (Pinned -> Device)");
  if (plain_copy(task)) return copy_name("DtoD (Device -> Device)");
  const std::string_view does = name_of(task.operation);
  switch (task.operation) {
    case Operation::optimizer:
      return kernel(scenario.optimizer == Optimizer::adamw_loop
                        ? "at::native::vectorized_elementwise_kernel<optimizer>"
                        : "at::native::multi_tensor_apply_kernel<optimizer>");
    case Operation::concatenate:
      return kernel("at::native::CatArrayBatchedCopy<concatenate>");
    case Operation::multiply:
      return kernel(schedule.work_of(task).gemm ? "gemm" : std::string(does));
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
      break;
  }
  return kernel(fmt::format("at::native::vectorized_elementwise_kernel<{}>", does));
}

std::string operator_name(const Scenario& scenario, const Schedule& schedule, const Task& task) {
  if (const Kernel* own = kernel_of(scenario, task))
    return fmt::format("{}{}", kineto::aten, own->name);
  switch (task.operation) {
    case Operation::copy_in:
      return fmt::format("{}{}", kineto::reducer, plain_copy(task) ? "copy_" : "mul_out");
    case Operation::copy_out:
      return schedule.buckets.size() == 1 && task.bucket == nobody
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
      break;
  }
  return fmt::format("{}{}", kineto::aten, name_of(task.operation));
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

CollectiveName collective_name(const Scenario& scenario, const Schedule& schedule, const Task& task,
                               const CollectiveChoice& choice) {
  const Work& work = schedule.work_of(task);
  const TypeName type = message_type(scenario, schedule, task);
  const Words words = words_of(collective_of(task.operation));
  CollectiveName named;
  named.word = words.word;
  named.call = words.call;
  named.name = words.name;
  named.dtype = type.dtype;
  named.ranks = work.group > 0 ? work.group : schedule.ranks;
  named.elements_in = named.elements_out = work.payload.count / type.bytes;
  if (task.operation == Operation::all_gather) named.elements_out *= named.ranks;
  if (task.operation == Operation::reduce_scatter) named.elements_out /= named.ranks;
  const bool tree =
      choice.algorithm == NcclAlgorithm::tree && task.operation == Operation::all_reduce;
  named.kernel = fmt::format(
      "ncclDevKernel_{}_{}{}_LL(ncclDevKernelArgsStorage<4096ul>)", words.kernel,
      sums(task.operation) ? fmt::format("Sum_{}_", type.kernel) : "", tree ? "TREE" : "RING");
  return named;
}

double port_share(Operation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (collective_of(operation)) {
    case CollectiveOperation::all_reduce:
      return 2 * others;
    case CollectiveOperation::all_gather:  // each rank's input is one part of the result
      return ranks - 1;
    case CollectiveOperation::reduce_scatter:
      return others;
    case CollectiveOperation::broadcast:
      return 1;
  }
  return 1;
}

std::string_view tensor_type(DType type) {
  return type_name(type).tensor;
}

}  // namespace ddpsim
