// From a description, which has each distinct kernel once, to a workload of layers of kernels.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "model/kernel/host_law.hpp"
#include "model/kernel/price_by_class.hpp"
#include "model/workload/host_calls.hpp"
#include "scenarios/reader/workload/description.hpp"

namespace ddpsim {
namespace {

std::size_t index(int position) {
  return static_cast<std::size_t>(position);
}

/// A kernel that does nothing, for what has to name one where none runs.
Kernel no_work() {
  Kernel kernel;
  kernel.name = "nothing";
  return kernel;
}

/// One pass of a layer: kernels in the order they run, and where in it gradients are complete.
class DescribedPass {
 public:
  /// `closings`: the entries, counted from 0 with every repetition, behind which a gradient is
  /// complete or a collective is sent.
  explicit DescribedPass(std::set<int> closings) : closings_(std::move(closings)) {}

  /// An entry, so many times in a row. None: it is there, but nothing runs.
  void run(const std::optional<Kernel>& kernel, int count) {
    while (count > 0) {  // in pieces that end where a pass is closed
      const auto closing = closings_.lower_bound(entries_);
      int piece = closing == closings_.end() ? count : std::min(count, *closing - entries_ + 1);
      if (kernel && kernel->gemm) piece = 1;
      if (kernel) append(*kernel, piece);
      entries_ += piece;
      kernel_of_entry_.resize(static_cast<std::size_t>(entries_),
                              std::max(0, static_cast<int>(kernels_.size()) - 1));
      if (closings_.contains(entries_ - 1)) close();
      count -= piece;
    }
  }

  /// The kernel that holds this entry, of those in `closings`.
  int kernel_of(int closing) const { return kernel_of_closing_.at(closing); }

  /// The kernels that hold these entries; of one that is left out, the kernel before it.
  std::optional<KernelRange> kernels_of(const std::optional<KernelRange>& entries) const {
    if (!entries || kernels_.empty()) return std::nullopt;
    return KernelRange{kernel_of_entry_[index(entries->first)],
                       kernel_of_entry_[index(entries->last)]};
  }

  /// What a call takes the host although the device leaves out the kernel that the description has
  /// it with.
  void wait(Duration host) { waiting_ += host; }

  std::vector<Kernel> take() && { return std::move(kernels_); }

 private:
  void append(const Kernel& kernel, int count) {
    if (open_ && !kernel.gemm && kernel.time.has_value() == kernels_.back().time.has_value() &&
        kernel.by_class.has_value() == kernels_.back().by_class.has_value()) {
      if (merged_ == 0) kernels_.back().name += " and others";
      ++merged_;
    } else {
      kernels_.push_back(kernel);
      kernels_.back().traffic = {};
      kernels_.back().launches = kernels_.back().calls = 0;
      if (kernel.time) kernels_.back().time = Duration::zero();
      if (kernel.by_class) kernels_.back().by_class = ClassCost{{}, {}, 0};
      merged_ = 0;
    }
    kernels_.back().traffic += count * kernel.traffic;
    kernels_.back().launches += count * kernel.launches;
    kernels_.back().calls += count * kernel.calls;
    if (kernel.time) *kernels_.back().time += count * *kernel.time;
    if (kernel.by_class) add(*kernels_.back().by_class, *kernel.by_class, count);
    if (kernel.by_class) kernels_.back().by_class->host += std::exchange(waiting_, {});
    open_ = !kernel.gemm;
  }

  /// Adds so many of a kernel to a sum, of which memory bounds the mean share.
  static void add(ClassCost& sum, const ClassCost& each, int count) {
    const Duration more = count * each.work;
    const double bound = in_seconds(sum.work) * static_cast<double>(sum.memory_fraction) +
                         in_seconds(more) * static_cast<double>(each.memory_fraction);
    sum.work += more;
    sum.host += count * each.host;
    if (sum.work > Duration::zero())
      sum.memory_fraction = static_cast<float>(bound / in_seconds(sum.work));
  }

  /// A gradient is complete behind the last entry.
  void close() {
    if (kernels_.empty()) kernels_.push_back(no_work());
    kernel_of_closing_.emplace(entries_ - 1, static_cast<int>(kernels_.size()) - 1);
    open_ = false;
  }

  std::set<int> closings_;
  std::map<int, int> kernel_of_closing_;
  std::vector<int> kernel_of_entry_;
  std::vector<Kernel> kernels_;
  int entries_ = 0;  ///< that have run, every repetition counted
  int merged_ = 0;   ///< into the last kernel
  bool open_ = false;
  Duration waiting_{};
};

/// Copies of layout, helpers and sums of parts are there for kernels of tensor cores: those of a
/// convolution in fp32 are among its own launches.
bool is_left_out(const DescribedKernel& described, std::optional<DType> compute,
                 const Device& device) {
  if (described.op != "cudnn.layout" && described.op != "cudnn.helper" &&
      described.op != "cudnn.sum_of_parts")
    return false;
  DescribedKernel convolution;
  convolution.kind = KernelKind::conv;
  convolution.type = described.type;
  return multiplied_as(convolution, compute, device) == DType::fp32;
}

/// What a call takes the reference host of which the description does not say it, as those that
/// earlier releases wrote: a plain one, with a bare launch for each other kernel.
Duration host_of(const DescribedKernel& described) {
  if (described.host) return *described.host;
  const CallTime call = call_time(Call::elementwise, false, described.type);
  return described.operations * call.time +
         std::max(0, described.launches - described.operations) * launch_within_call;
}

int launches_of(const DescribedKernel& described, DType type, const Device& device) {
  if (described.kind == KernelKind::conv && type == DType::fp32 && !device.synchronous)
    return described.launches_in_fp32.value_or(described.launches);
  return described.launches;
}

/// What the call of a kernel that is left out takes the host all the same. The first kernel of a
/// call has its time; one behind has at most a bare launch, which is left out too.
Duration host_of_call(const DescribedKernel& described) {
  const Duration host = described.host.value_or(Duration::zero());
  return host > described.launches * launch_within_call ? host_in_step(host) : Duration::zero();
}

/// What decides the time of a kernel on a device, by its class.
KernelPart part_of(const DescribedKernel& described, DType type, const Device& device) {
  KernelPart part;
  part.host = host_of(described);
  part.multiprocessors = described.multiprocessors.value_or(0);
  part.capability = described.capability;
  part.kernel.type = type;
  part.kernel.traffic = Bytes{described.read + described.written};
  part.kernel.launches = launches_of(described, type, device);
  if (described.attention)
    part.kernel.shape = *described.attention;
  else if (described.conv)
    part.kernel.shape = *described.conv;
  else if (described.gemm)
    part.kernel.shape = *described.gemm;
  else
    part.kernel.shape = described.pattern.value_or(MemoryPattern{});
  return part;
}

/// A kernel of the description as the law of kernels takes it; none where the device runs none.
std::optional<Kernel> priced(const DescribedKernel& described, std::optional<DType> compute,
                             const Device& device, DescribedRelease release) {
  if (is_left_out(described, compute, device) ||
      !launches(device, described.multiprocessors.value_or(0), described.capability))
    return std::nullopt;
  Kernel kernel;
  kernel.name = described.op;
  kernel.gemm = described.attention
                    ? std::optional(fused_attention_gemm(described.attention->shape))
                : described.gemm ? std::optional(described.gemm->gemm)
                                 : std::nullopt;
  if (kernel.gemm)
    kernel.recomputed = described.recomputed  ? 1
                        : described.attention ? recomputed_share(described.attention->shape)
                                              : 0;
  kernel.traffic = Bytes{described.read + described.written};
  kernel.type = multiplied_as(described, compute, device);
  kernel.launches = launches_of(described, kernel.type, device);
  kernel.calls = described.operations;
  kernel.time = described.time;
  if (const auto time = class_time(described, compute, device, release)) {
    ClassCost cost{{}, {}, 0};
    kernel.launches = 0;
    add_part(cost, kernel.launches, part_of(described, kernel.type, device), *time);
    kernel.by_class = cost;
  }
  return kernel;
}

/// The largest result a pass of the layer writes, less the gradients of parameters, which stay.
std::int64_t largest_result(const WorkloadDescription& description,
                            const std::vector<KernelRun>& pass,
                            const std::map<int, std::int64_t>& gradients) {
  std::int64_t most = 0;
  int entries = 0;
  for (const KernelRun& run : pass) {
    std::int64_t written = description.kernels[index(run.kernel)].written;
    entries += run.count;
    const auto gradient = gradients.find(entries - 1);
    if (gradient != gradients.end()) written -= std::min(written, gradient->second);
    most = std::max(most, written);
  }
  return most;
}

/// What a layer takes: what it keeps is described, and the most that is alive. Of descriptions that
/// do not say the latter, what its passes hold beside what is kept is estimated as the largest
/// result of a kernel; backward its gradient and that of the input.
ModuleMemory memory_of(const WorkloadDescription& description, const DescribedLayer& layer,
                       const std::map<int, std::int64_t>& gradients, bool convolutions_in_fp32) {
  ModuleMemory memory;
  memory.kept = Bytes{*layer.kept};
  memory.forward_working = Bytes{largest_result(description, layer.forward, {})};
  memory.backward_working = 2 * Bytes{largest_result(description, layer.backward, gradients)};
  for (const auto& [entry, size] : gradients) memory.gradients += Bytes{size};
  const auto peak = [&](const auto& usual, const auto& in_fp32) -> std::optional<Bytes> {
    if (!usual) return std::nullopt;
    return Bytes{convolutions_in_fp32 ? in_fp32.value_or(*usual) : *usual};
  };
  memory.forward_peak = peak(layer.forward_peak, layer.forward_peak_in_fp32);
  memory.backward_peak = peak(layer.backward_peak, layer.backward_peak_in_fp32);
  return memory;
}

Parameter parameter_of(const DescribedParameter& described) {
  Parameter parameter;
  parameter.name = described.name;
  parameter.shape = described.shape;
  parameter.dtype = described.dtype;
  parameter.sparse = described.sparse;
  parameter.sparse_rows = described.sparse_rows;
  parameter.unused = described.unused;
  return parameter;
}

/// The kind of collective that `op` names; none if no law prices that kind.
std::optional<OwnCollective::Kind> collective_kind_of(const std::string& op) {
  using Kind = OwnCollective::Kind;
  for (const auto& [name, kind] : {std::pair{"all_reduce", Kind::all_reduce},
                                   {"all_gather", Kind::all_gather},
                                   {"reduce_scatter", Kind::reduce_scatter},
                                   {"broadcast", Kind::broadcast}})
    if (op == name) return kind;
  return std::nullopt;
}

Bytes gradient_of(const DescribedParameter& described) {
  const Parameter parameter = parameter_of(described);
  return parameter.sparse ? parameter.sparse_values() + parameter.sparse_indices()
                          : parameter.size();
}

}  // namespace

std::string_view name_of(KernelKind kind) {
  constexpr std::array<std::string_view, 4> names{"gemm", "conv", "attention", "memory"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(DescribedRelease release) {
  constexpr std::array<std::string_view, 3> names{"2.6", "2.11", "2.13"};
  return names[static_cast<std::size_t>(release)];
}

int number_of(DescribedRelease release) {
  constexpr std::array<int, 3> numbers{206, 211, 213};
  return numbers[static_cast<std::size_t>(release)];
}

DType multiplied_as(const DescribedKernel& kernel, std::optional<DType> compute,
                    const Device& device) {
  const bool narrow = kernel.type != DType::fp32 && kernel.type != DType::tf32;
  if (narrow || kernel.kind == KernelKind::memory) return kernel.type;
  DType type = kernel.type;
  if (compute)
    type = *compute;
  else if (kernel.kind == KernelKind::conv)
    type = DType::tf32;
  if (type == DType::tf32 && !kernel.tensor_cores) type = DType::fp32;
  return device.peak_of(type).flops_per_second > 0 ? type : DType::fp32;
}

std::optional<KernelTime> class_time(const DescribedKernel& kernel, std::optional<DType> compute,
                                     const Device& device, DescribedRelease release) {
  if (kernel.time || !has_laws(device) || is_left_out(kernel, compute, device)) return std::nullopt;
  return part_time(part_of(kernel, multiplied_as(kernel, compute, device), device), device,
                   number_of(release));
}

bool is_priced(const DescribedCollective& collective) {
  return collective.layer && collective.bytes > 0 && collective_kind_of(collective.op);
}

Workload workload_of(const WorkloadDescription& description, const std::string& name,
                     std::optional<DType> compute, const Device& device) {
  Workload workload;
  workload.name = name;
  workload.source = description.source;
  workload.buffers = description.buffers;
  workload.arrival = description.arrival;
  for (const BufferGroup& group : description.frozen) workload.frozen += group.size;
  workload.frozen_parameters = description.frozen_parameters;
  workload.inputs = Bytes{description.inputs};
  workload.tells_recomputed = description.marks_recomputed;
  const bool in_fp32 = std::any_of(
      description.kernels.begin(), description.kernels.end(), [&](const DescribedKernel& kernel) {
        return kernel.kind == KernelKind::conv && kernel.tensor_cores &&
               multiplied_as(kernel, compute, device) == DType::fp32;
      });
  std::vector<std::optional<Kernel>> kernels;  // [kernel of the description]
  for (const DescribedKernel& each : description.kernels)
    kernels.push_back(priced(each, compute, device, description.release));

  // [layer]: after which entry of its backward pass how many bytes of gradients are complete.
  std::vector<std::map<int, std::int64_t>> gradients(description.layers.size());
  for (const DescribedParameter& each : description.parameters)
    if (!each.unused) gradients[index(*each.layer)][*each.after] += gradient_of(each).count;

  const auto append = [&](DescribedPass& pass, const KernelRun& run) {
    const DescribedKernel& described = description.kernels[index(run.kernel)];
    if (!kernels[index(run.kernel)]) pass.wait(run.count * host_of_call(described));
    pass.run(kernels[index(run.kernel)], run.count);
  };
  const auto sending = [&](std::size_t layer, StepPass pass) {  // the entries behind which it sends
    std::set<int> entries;
    for (const DescribedCollective& each : description.collectives)
      if (is_priced(each) && each.pass == pass && index(*each.layer) == layer)
        entries.insert(*each.after);
    return entries;
  };
  std::vector<DescribedPass> forwards, backwards;
  for (std::size_t l = 0; l < description.layers.size(); ++l) {
    const DescribedLayer& described = description.layers[l];
    DescribedPass& forward = forwards.emplace_back(sending(l, StepPass::forward));
    for (const KernelRun& run : described.forward) append(forward, run);
    std::set<int> closings = sending(l, StepPass::backward);
    for (const auto& [entry, size] : gradients[l]) closings.insert(entry);
    DescribedPass& backward = backwards.emplace_back(std::move(closings));
    for (const KernelRun& run : described.backward) append(backward, run);
    Layer& layer = workload.layers.emplace_back();
    layer.name = described.name;
    if (described.kept) layer.memory = {memory_of(description, described, gradients[l], in_fp32)};
  }
  for (const DescribedParameter& described : description.parameters) {
    Parameter& parameter = workload.parameters.emplace_back(parameter_of(described));
    if (described.unused) continue;
    parameter.layer = *described.layer;
    const DescribedPass& backward = backwards[index(*described.layer)];
    parameter.ready_after = backward.kernel_of(*described.after);
    parameter.forward = forwards[index(*described.layer)].kernels_of(described.forward);
    parameter.backward = backward.kernels_of(described.backward);
  }
  for (FrozenParameter& each : workload.frozen_parameters) {
    each.forward = forwards[index(each.layer)].kernels_of(each.forward);
    each.backward = backwards[index(each.layer)].kernels_of(each.backward);
  }
  for (const DescribedCollective& each : description.collectives) {
    if (!is_priced(each)) continue;
    const bool backward = each.pass == StepPass::backward;
    const int after = (backward ? backwards : forwards)[index(*each.layer)].kernel_of(*each.after);
    workload.collectives.insert(
        workload.collectives.end(), static_cast<std::size_t>(each.count),
        {*collective_kind_of(each.op), Bytes{each.bytes}, backward, *each.layer, after});
  }
  for (std::size_t l = 0; l < forwards.size(); ++l)
    workload.layers[l].forward = std::move(forwards[l]).take();
  for (std::size_t l = 0; l < backwards.size(); ++l)
    workload.layers[l].backward = std::move(backwards[l]).take();
  // Unused parameters wait for nothing, but name a kernel as all others do: the first layer's
  // first.
  if (workload.layers.front().backward.empty()) workload.layers.front().backward = {no_work()};

  if (!workload.arrival.empty())  // it leaves out who is unused
    for (std::size_t p = 0; p < workload.parameters.size(); ++p)
      if (workload.parameters[p].unused) workload.arrival.push_back(static_cast<int>(p));
  return workload;
}

MaskedFlops masked_flops(const WorkloadDescription& description) {
  MaskedFlops flops;
  for (const DescribedLayer& layer : description.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const KernelRun& run : *pass) {
        const DescribedKernel& kernel = description.kernels[index(run.kernel)];
        if (!kernel.attention) continue;
        const double counted = run.count * counted_flops(kernel.attention->shape);
        flops.counted += counted;
        flops.masked += counted * (1 - visible_scores(kernel.attention->shape) /
                                           score_count(kernel.attention->shape));
      }
  return flops;
}

}  // namespace ddpsim
