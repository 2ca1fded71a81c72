#include "backend/nccl/compute/gpu_memory.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/nccl/compute/gpu_traffic.hpp"

namespace ddpsim {
namespace {

constexpr std::int64_t alignment = 256;  // bytes; what cudaMalloc gives, and GEMMs like

Bytes operands_of(const Kernel& kernel) {
  if (!kernel.gemm) return std::min(longest_stream, kernel.traffic);
  const Gemm& g = *kernel.gemm;
  return std::max({g.m * g.k, g.k * g.n, g.m * g.n}) * g.batch * Bytes{4};
}

}  // namespace

GpuMemory::GpuMemory(Gpu& gpu, const Workload& workload, Optimizer optimizer, int rank)
    : gpu_(gpu),
      workload_(workload),
      offsets_(gradient_offsets(workload, alignment)),
      bindings_(bind_gradients(workload)) {
  for (const Parameter& each : workload.parameters) {
    if (each.dtype == DType::tf32)
      throw std::invalid_argument(fmt::format(
          "{} is tf32, which is how numbers are multiplied: store it as fp32", each.name));
    if (std::find(all_dtypes.begin(), all_dtypes.end(), each.dtype) == all_dtypes.end())
      throw std::invalid_argument(fmt::format(
          "the nccl backend computes in fp32, bf16 and fp16, and {} is {}: such a step is only "
          "predicted",
          each.name, name_of(each.dtype)));
    one_type_ = one_type_ && each.dtype == workload.parameters.front().dtype;
  }
  make_stores(optimizer);
  make_operands(optimizer_kernels(optimizer, workload), rank);
}

void GpuMemory::make_stores(Optimizer optimizer) {
  const Bytes all{offsets_.back()};
  parameters_ = gpu_.allocate(all, "parameters");
  gradients_ = gpu_.allocate(all, "gradients");
  buckets_ = gpu_.allocate(all, "buckets");
  for (const auto& store : {parameters_, gradients_, buckets_})
    gpu_.clear(Stream::compute, store.get(), all);
  if (optimizer != Optimizer::none) {
    momentum_ = gpu_.allocate(all, "optimizer state");
    gpu_.clear(Stream::compute, momentum_.get(), all);
  }
  if (keeps_variance(optimizer)) {
    variance_ = gpu_.allocate(all, "optimizer state");
    gpu_.clear(Stream::compute, variance_.get(), all);
  }
  Bytes most_buffers;
  for (const BufferGroup& group : workload_.buffers)
    most_buffers = std::max(most_buffers, group.size);
  if (most_buffers > Bytes{}) {
    network_buffers_ = gpu_.allocate(most_buffers, "buffers");
    gpu_.clear(Stream::compute, network_buffers_.get(), most_buffers);
  }
}

/// Operands for the largest kernel of each type, and more than the L2 cache holds.
void GpuMemory::make_operands(const std::vector<Kernel>& optimizer_kernels, int rank) {
  std::map<DType, Bytes> largest{{DType::fp32, shortest_stream}};
  Bytes result = shortest_stream;
  const auto look_at = [&](const Kernel& kernel) {
    const DType type = kernel.gemm ? kernel.type : DType::fp32;
    largest[type] = std::max(largest[type], operands_of(kernel));
    result = std::max(result, operands_of(kernel));
  };
  for (const Layer& layer : workload_.layers) {
    for (const Kernel& kernel : layer.forward) look_at(kernel);
    for (const Kernel& kernel : layer.backward) look_at(kernel);
  }
  for (const Kernel& kernel : optimizer_kernels) look_at(kernel);
  for (const Parameter& each : workload_.parameters)
    largest[each.dtype] = std::max(largest[each.dtype], each.size());
  const Bytes beyond_cache = 2 * gpu_.description().l2;
  for (const auto& [type, size] : largest) {
    Pool& pool = pools_[type];
    pool.size = 2 * std::max(size, beyond_cache) + Bytes{alignment};
    pool.values = gpu_.allocate(pool.size, "operands");
    gpu_.fill(pool.values.get(), pool.size.count / size_of(type).count, type,
              2 + static_cast<std::uint64_t>(rank));
  }
  scratch_ = gpu_.allocate(std::max(result, beyond_cache) + Bytes{alignment}, "activations");
}

void GpuMemory::arrange(const Schedule& schedule) {
  placement_ = place(schedule, workload_, offsets_);
  together_ = one_type_ && std::none_of(placement_.gradients.begin(), placement_.gradients.end(),
                                        [](const Place& place) { return place.in_buckets; });
  const bool several = std::any_of(schedule.tasks.begin(), schedule.tasks.end(),
                                   [](const Task& task) { return task.micro_batch > 0; });
  if (several && !fresh_) fresh_ = gpu_.allocate(Bytes{offsets_.back()}, "gradients");
}

std::byte* GpuMemory::written(std::int32_t index, int micro_batch) const {
  return micro_batch == 0 ? at_place(placement_.gradients[at(index)])
                          : fresh_.get() + offsets_[at(index)];
}

std::vector<float> GpuMemory::gradient(int index) const {
  const Parameter& each = parameter(index);
  return gpu_.read(at_place(placement_.gradients[at(index)]), each.elements(), each.dtype);
}

const std::byte* GpuMemory::operand(DType type, Bytes size, std::uint32_t seed) const {
  const Pool& pool = pools_.at(type);
  const auto places = static_cast<std::uint32_t>((pool.size - size).count / alignment);
  return pool.values.get() + (seed * 2654435761U >> 4) % places * alignment;
}

}  // namespace ddpsim
