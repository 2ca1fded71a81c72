#include "backend/nccl/gpu_memory.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::int64_t alignment = 256;    // bytes; what cudaMalloc gives, and GEMMs like
constexpr Bytes shortest_stream{8 << 10};  // one row
constexpr Bytes longest_stream{256 << 20};

Bytes operands_of(const Kernel& kernel) {
  if (!kernel.gemm) return std::min(longest_stream, kernel.traffic);
  const Gemm& g = *kernel.gemm;
  return std::max({g.m * g.k, g.k * g.n, g.m * g.n}) * g.batch * Bytes{4};
}

/// Of operand `number` of a kernel; different for every kernel of every micro-batch.
std::uint32_t seed_of(const Task& task, std::uint32_t number) {
  return static_cast<std::uint32_t>(((task.layer + 1) * 64 + task.kernel + 1) * 16 +
                                    1031 * task.micro_batch +
                                    (task.operation == Operation::backward ? 8 : 0)) +
         number;
}

/// By its name: nothing else tells a normalisation from an elementwise kernel.
bool reduces_rows(const Kernel& kernel) {
  for (const char* part : {"norm", "Norm", "ln", "bn", "softmax", "loss"})
    if (kernel.name.find(part) != std::string::npos) return true;
  return false;
}

bool is_adam(Optimizer optimizer) {
  return optimizer != Optimizer::none && optimizer != Optimizer::sgd;
}

}  // namespace

GpuMemory::GpuMemory(Gpu& gpu, const Workload& workload, Optimizer optimizer, int rank)
    : gpu_(gpu),
      workload_(workload),
      optimizer_(optimizer),
      optimizer_kernels_(optimizer_kernels(optimizer, workload)),
      offsets_(gradient_offsets(workload, alignment)),
      bindings_(bind_gradients(workload)) {
  for (const Parameter& each : workload.parameters) {
    if (each.dtype == DType::tf32)
      throw std::invalid_argument(fmt::format(
          "{} is tf32, which is how numbers are multiplied: store it as fp32", each.name));
    one_type_ = one_type_ && each.dtype == workload.parameters.front().dtype;
  }
  const Bytes all{offsets_.back()};
  parameters_ = gpu.allocate(all, "parameters");
  gradients_ = gpu.allocate(all, "gradients");
  buckets_ = gpu.allocate(all, "buckets");
  for (const auto& store : {parameters_, gradients_, buckets_})
    gpu.clear(Stream::compute, store.get(), all);
  if (optimizer != Optimizer::none) {
    momentum_ = gpu.allocate(all, "optimizer state");
    gpu.clear(Stream::compute, momentum_.get(), all);
  }
  if (is_adam(optimizer)) {
    variance_ = gpu.allocate(all, "optimizer state");
    gpu.clear(Stream::compute, variance_.get(), all);
  }
  Bytes most_buffers;
  for (const BufferGroup& group : workload.buffers)
    most_buffers = std::max(most_buffers, group.size);
  if (most_buffers > Bytes{}) {
    network_buffers_ = gpu.allocate(most_buffers, "buffers");
    gpu.clear(Stream::compute, network_buffers_.get(), most_buffers);
  }
  std::map<DType, Bytes> largest{{DType::fp32, shortest_stream}};
  Bytes result = shortest_stream;
  const auto look_at = [&](const Kernel& kernel) {
    const DType type = kernel.gemm ? kernel.type : DType::fp32;
    largest[type] = std::max(largest[type], operands_of(kernel));
    result = std::max(result, operands_of(kernel));
  };
  for (const Layer& layer : workload.layers) {
    for (const Kernel& kernel : layer.forward) look_at(kernel);
    for (const Kernel& kernel : layer.backward) look_at(kernel);
  }
  for (const Kernel& kernel : optimizer_kernels_) look_at(kernel);
  for (const Parameter& each : workload.parameters)
    largest[each.dtype] = std::max(largest[each.dtype], each.size());
  const Bytes beyond_cache = 2 * gpu.description().l2;
  for (const auto& [type, size] : largest) {
    Pool& pool = pools_[type];
    pool.size = 2 * std::max(size, beyond_cache) + Bytes{alignment};
    pool.values = gpu.allocate(pool.size, "operands");
    gpu.fill(pool.values.get(), pool.size.count / size_of(type).count, type,
             2 + static_cast<std::uint64_t>(rank));
  }
  scratch_size_ = std::max(result, beyond_cache) + Bytes{alignment};
  scratch_ = gpu.allocate(scratch_size_, "activations");
}

void GpuMemory::arrange(const Schedule& schedule) {
  if (schedule.join && schedule.join->joined_ranks > 0)
    throw std::invalid_argument("ranks without inputs are run by the gloo backend only");
  for (const Task& task : schedule.tasks)
    if (task.message == Message::parameters || task.message == Message::sparse_values)
      throw std::invalid_argument(fmt::format("{} in simulation and by the gloo backend only",
                                              task.message == Message::parameters
                                                  ? "models are averaged"
                                                  : "sparse gradients are reduced"));
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

std::string GpuMemory::range_name(const Schedule& schedule, const Task& task) const {
  std::string text(name_of(task.operation));
  if (task.step != nobody) {
    const Bucket& bucket = schedule.buckets[at(task.bucket)];
    const CommStep& step = bucket.steps[at(task.step)];
    text = name_of(step.action);
    if (step.tensor != nobody)
      return text + " " + parameter(bucket.parameters[at(step.tensor)]).name;
  }
  if (task.operation == Operation::forward)
    return text + " " + workload_.layers[at(task.layer)].forward[at(task.kernel)].name;
  if (task.operation == Operation::backward)
    return text + " " + workload_.layers[at(task.layer)].backward[at(task.kernel)].name;
  if (task.parameter != nobody) return text + " " + parameter(task.parameter).name;
  if (task.bucket != nobody)
    return text + fmt::format(" bucket {} ({})", task.bucket,
                              to_string(schedule.buckets[at(task.bucket)].size));
  return text;
}

std::vector<float> GpuMemory::gradient(int index) const {
  const Parameter& each = parameter(index);
  return gpu_.read(at_place(placement_.gradients[at(index)]), each.elements(), each.dtype);
}

/// A piece of the pool; another for another seed, so that no kernel finds what it reads in the cache.
const std::byte* GpuMemory::operand(DType type, Bytes size, std::uint32_t seed) {
  const Pool& pool = pools_.at(type);
  const auto places = static_cast<std::uint32_t>((pool.size - size).count / alignment);
  return pool.values.get() + (seed * 2654435761U >> 4) % places * alignment;
}

void GpuMemory::run(const Schedule& schedule, const Task& task, int ranks) {
  const float mean = 1.0F / static_cast<float>(ranks);
  const auto scale = [&](const Place& to, const Place& from, std::int32_t index, float factor) {
    gpu_.scale(task.stream, at_place(to), at_place(from), parameter(index).elements(),
               parameter(index).dtype, factor);
  };
  switch (task.operation) {
    case Operation::forward:
      return pass(task, workload_.layers[at(task.layer)].forward[at(task.kernel)], {});
    case Operation::backward:
      return pass(task, workload_.layers[at(task.layer)].backward[at(task.kernel)],
                  bindings_[at(task.layer)][at(task.kernel)]);
    case Operation::accumulate:
      return gpu_.add(task.stream, at_place(placement_.gradients[at(task.parameter)]),
                      written(task.parameter, task.micro_batch),
                      parameter(task.parameter).elements(), parameter(task.parameter).dtype);
    case Operation::copy_in:
      if (parameter(task.parameter).unused)
        return gpu_.clear(task.stream, at_place(placement_.slices[at(task.parameter)]),
                          parameter(task.parameter).size());
      return scale(placement_.slices[at(task.parameter)], placement_.gradients[at(task.parameter)],
                   task.parameter, schedule.comm_hook ? 1 : mean);  // the hook divides (R24)
    case Operation::concatenate:
      if (task.bucket == nobody) return copy_buffers(task);
      for (const std::int32_t p : schedule.buckets[at(task.bucket)].parameters)
        if (!parameter(p).unused)
          scale(placement_.slices[at(p)], placement_.gradients[at(p)], p, 1);
      return;
    case Operation::divide:
      if (task.parameter != nobody) {
        const Place& place = placement_.gradients[at(task.parameter)];
        return scale(place, place, task.parameter, mean);
      }
      return divide(schedule, task, mean);
    case Operation::copy_out:
      if (task.parameter == nobody) return copy_buffers(task);
      return scale(placement_.gradients[at(task.parameter)], placement_.slices[at(task.parameter)],
                   task.parameter, 1);
    case Operation::optimizer:
      return optimize(task);
    case Operation::gradient_hook: {  // `scale`: the backend refuses the others
      std::byte* gradient = written(task.parameter, task.micro_batch);
      return gpu_.scale(task.stream, gradient, gradient, parameter(task.parameter).elements(),
                        parameter(task.parameter).dtype,
                        static_cast<float>(schedule.hooks[at(task.user_hook)].value));
    }
    case Operation::module_hook:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
    case Operation::search_unused:
    case Operation::hook:
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::wait:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::cast:
    case Operation::correct:
    case Operation::pack:
    case Operation::draw:
    case Operation::multiply:
    case Operation::orthogonalize:
    case Operation::quantize:
    case Operation::dequantize:
    case Operation::select:
    case Operation::own_kernel:
    case Operation::synchronize:
      return;
  }
}

void GpuMemory::divide(const Schedule& schedule, const Task& task, float mean) {
  const Bucket& whole = schedule.buckets[at(task.bucket)];
  const DType type = type_of(whole);
  void* values = bucket(task.bucket);
  gpu_.scale(task.stream, values, values, whole.size.count / size_of(type).count, type, mean);
}

/// A group of the network's buffers into or out of one tensor.
void GpuMemory::copy_buffers(const Task& task) {
  move(task.stream, 2 * task.bytes, task.launches, seed_of(task, 0));
}

void GpuMemory::move(Stream stream, Bytes traffic, int launches, std::uint32_t seed,
                     Motion motion) {
  const Bytes each{traffic.count / std::max(1, launches)};
  for (int i = 0; i < launches; ++i) {
    const Bytes half{std::max(shortest_stream, std::min(each, longest_stream)).count / 2};
    const std::byte* from = operand(DType::fp32, half, seed + static_cast<std::uint32_t>(i));
    if (motion == Motion::rows)
      gpu_.normalise(from, scratch_.get(), each, longest_stream);
    else
      gpu_.move(stream, from, scratch_.get(), each, longest_stream);
  }
}

void GpuMemory::pass(const Task& task, const Kernel& kernel, const GradientBinding& binding) {
  for (const std::int32_t p : binding.fills) {
    const Parameter& each = parameter(p);
    gpu_.scale(task.stream, written(p, task.micro_batch),
               operand(each.dtype, each.size(), seed_of(task, 2) + static_cast<std::uint32_t>(p)),
               each.elements(), each.dtype, 0.5F);
  }
  if (kernel.gemm) {
    const Gemm& g = *kernel.gemm;
    const Bytes element = size_of(kernel.type);
    GemmCall call;
    call.gemm = g;
    call.type = call.result_type = kernel.type;
    call.left = operand(kernel.type, g.batch * g.m * g.k * element, seed_of(task, 0));
    call.right = operand(kernel.type, g.batch * g.k * g.n * element, seed_of(task, 1));
    call.result = scratch_.get();
    call.layout = task.operation == Operation::forward ? GpuGemmLayout::nt : GpuGemmLayout::nn;
    if (binding.result != nobody) {
      call.layout = GpuGemmLayout::tn;
      call.result_type = parameter(binding.result).dtype;
      call.result = written(binding.result, task.micro_batch);
    }
    if (call.result_type != DType::fp32 && call.result_type != kernel.type)
      throw std::invalid_argument(
          fmt::format("{} multiplies in {}, and its gradient is {}: no "
                      "library does that",
                      kernel.name, name_of(kernel.type), name_of(call.result_type)));
    return gpu_.gemm(call);
  }
  if (kernel.time && kernel.traffic == Bytes{}) return gpu_.spin(task.stream, *kernel.time);
  // What filled gradients above is part of this kernel's traffic.
  Bytes left = kernel.traffic;
  for (const std::int32_t p : binding.fills)
    left = std::max(Bytes{}, left - 2 * parameter(p).size());
  move(task.stream, left, std::max(1, kernel.launches - static_cast<int>(binding.fills.size())),
       seed_of(task, 3), reduces_rows(kernel) ? Motion::rows : Motion::elementwise);
}

/// The real update, and then kernels that move what PyTorch's many small ones do beyond that.
void GpuMemory::optimize(const Task& task) {
  if (workload_.optimizer) return gpu_.spin(task.stream, *workload_.optimizer);
  const Kernel& kernel = optimizer_kernels_[at(task.kernel)];
  if (task.kernel == 0) ++steps_;
  const int passes = is_adam(optimizer_) ? 7 : 5;
  int used = 1;
  Bytes moved;
  if (optimizer_ == Optimizer::adamw_loop) {
    update(task.kernel, task.stream);
    moved = passes * parameter(task.kernel).size();
  } else if (together_) {
    update_all();
    moved = passes * workload_.gradient_size();
  } else {
    used = static_cast<int>(workload_.parameters.size());
    for (std::int32_t p = 0; p < used; ++p) update(p, task.stream);
    moved = passes * workload_.gradient_size();
  }
  const Bytes left = std::max(Bytes{}, kernel.traffic - moved);
  if (left > Bytes{})
    move(task.stream, left, std::max(1, kernel.launches - used), seed_of(task, 0));
}

/// An equal share of what the optimizer's kernels move goes with every byte of gradient.
void GpuMemory::update_bucket(const Schedule& schedule, const Task& task) {
  const Bucket& whole = schedule.buckets[at(task.bucket)];
  const double share =
      static_cast<double>(whole.size.count) / static_cast<double>(workload_.gradient_size().count);
  if (workload_.optimizer) return gpu_.spin(task.stream, scaled(*workload_.optimizer, share));
  if (optimizer_ == Optimizer::none) return;
  if (task.bucket == 0) ++steps_;
  for (const std::int32_t p : whole.parameters) update(p, task.stream);
  Bytes all;
  int launches = 0;
  for (const Kernel& kernel : optimizer_kernels_) {
    all += kernel.traffic;
    launches += kernel.launches;
  }
  const Bytes left{std::llround(share * static_cast<double>(all.count)) -
                   (is_adam(optimizer_) ? 7 : 5) * whole.size.count};
  if (left <= Bytes{}) return;
  const auto own = static_cast<std::int64_t>(whole.parameters.size());
  move(task.stream, left,
       static_cast<int>(std::max<std::int64_t>(1, std::llround(share * launches) - own)),
       seed_of(task, 0));
}

void GpuMemory::update(std::int32_t index, Stream stream) {
  const Parameter& each = parameter(index);
  UpdateCall call;
  call.optimizer = optimizer_;
  call.parameter = parameters_.get() + offsets_[at(index)];
  call.gradient = at_place(placement_.gradients[at(index)]);
  call.momentum = momentum_.get() + offsets_[at(index)];
  if (variance_) call.variance = variance_.get() + offsets_[at(index)];
  call.count = each.elements();
  call.type = each.dtype;
  call.step = steps_;
  call.stream = stream;
  gpu_.update(call);
}

/// All parameters in one go: they, their gradients and state lie side by side, gaps included.
void GpuMemory::update_all() {
  UpdateCall call;
  call.optimizer = optimizer_;
  call.type = workload_.parameters.front().dtype;
  call.parameter = parameters_.get();
  call.gradient = gradients_.get();
  call.momentum = momentum_.get();
  if (variance_) call.variance = variance_.get();
  call.count = offsets_.back() / size_of(call.type).count;
  call.step = steps_;
  gpu_.update(call);
}

}  // namespace ddpsim
