#include "model/workload/layer_builder.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {

Kernel ModuleMaker::gemm(std::string name, const Gemm& shape) const {
  const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
  return gemm(std::move(name), shape, shape.batch * elements);
}

Kernel ModuleMaker::gemm(std::string name, const Gemm& shape, std::int64_t elements) const {
  return {.name = std::move(name),
          .gemm = shape,
          .traffic = elements * size_of(dtype_),
          .launches = 1,
          .type = compute_,
          .time = std::nullopt};
}

Kernel ModuleMaker::eager(std::string name, const std::vector<EagerKernels>& runs) const {
  Kernel kernel{.name = std::move(name),
                .gemm = std::nullopt,
                .traffic = {},
                .launches = 0,
                .type = dtype_,
                .time = std::nullopt};
  for (const EagerKernels& run : runs) {
    kernel.launches += static_cast<int>(run.passes.size());
    for (const int passes : run.passes) kernel.traffic += passes * run.elements * size_of(dtype_);
  }
  return kernel;
}

Parameter ModuleMaker::parameter(std::string name, std::vector<std::int64_t> shape,
                                 int ready_after) const {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .dtype = dtype_,
          .layer = 0,
          .ready_after = ready_after,
          .sparse = false};
}

Module ModuleMaker::elementwise(const std::string& name, const EagerKernels& forward,
                                const EagerKernels& backward) const {
  Module module;
  if (!forward.passes.empty()) module.forward = {eager(name, {forward})};
  if (!backward.passes.empty()) module.backward = {eager(name + ".grad", {backward})};
  // A result, and backward its gradient and that of the input.
  module.forward_working = stored(forward.elements);
  module.backward_working = stored(2 * backward.elements);
  return module;
}

Module ModuleMaker::fork(const std::string& name, std::int64_t elements) const {
  return elementwise(name, {}, {elements, {3}});
}

Module ModuleMaker::linear(LinearKind kind, std::int64_t rows, std::int64_t in,
                           const std::vector<Projection>& projections, Operand operand,
                           Input input) const {
  const bool biased = kind == LinearKind::biased || kind == LinearKind::conv1d;
  const bool to_input = input == Input::activation;
  Module module;
  for (const auto& [name, out] : projections)
    module.forward.push_back(gemm(name, {.m = rows, .n = out, .k = in}));

  std::vector<EagerKernels> accumulate;
  if (to_input && projections.size() > 1)
    accumulate.push_back({rows * in, std::vector<int>(projections.size() - 1, 3)});
  const int kernels_each = 1 + (to_input ? 1 : 0) + (biased ? 1 : 0);
  for (auto projection = projections.rbegin(); projection != projections.rend(); ++projection) {
    const auto& [name, out] = *projection;
    std::vector<Kernel>& backward = module.backward;
    if (to_input) backward.push_back(gemm(name + ".grad_data", {.m = rows, .n = in, .k = out}));
    backward.push_back(gemm(name + ".grad_weight", {.m = out, .n = in, .k = rows}));
    if (biased) backward.push_back(eager(name + ".grad_bias", {{rows * out, {1}}}));
    if (kind == LinearKind::einsum) accumulate.push_back({in * out, {2}});
  }
  if (!accumulate.empty())
    module.backward.push_back(eager(projections.front().name + ".accumulate", accumulate));

  int ready_after = kernels_each * static_cast<int>(projections.size()) - 1;
  for (const auto& [name, out] : projections) {
    const bool in_first = kind == LinearKind::conv1d;
    module.parameters.push_back(
        parameter(name + ".weight", {in_first ? in : out, in_first ? out : in}, ready_after));
    if (biased) module.parameters.push_back(parameter(name + ".bias", {out}, ready_after));
    ready_after -= kernels_each;
  }

  if (operand == Operand::stored && casts())
    module.kept += static_cast<std::int64_t>(projections.size()) * computed(rows * in);
  else if (operand != Operand::kept)
    module.kept += computed(rows * in);
  std::int64_t results = 0;
  for (const auto& [name, out] : projections) {
    if (casts()) module.kept += computed(in * out);
    results += rows * out;
  }
  module.forward_working = computed(results);
  module.backward_working = computed(results + (to_input ? rows * in : 0));
  return module;
}

namespace {

/// Kernels in the order they run; neighbours that only move memory are one, unless it is few blocks
/// that do.
class Pass {
 public:
  /// Returns the kernel's index. `closed`: a gradient is complete here, so the next is a kernel
  /// apart.
  int run(const Kernel& kernel, bool closed) {
    if (open_ && !kernel.gemm && kernel.blocks == 0) {
      Kernel& last = kernels_.back();
      last.name += "+" + kernel.name;
      last.traffic += kernel.traffic;
      last.launches += kernel.launches;
      last.followers += kernel.followers;
    } else {
      kernels_.push_back(kernel);
    }
    open_ = !kernel.gemm && kernel.blocks == 0 && !closed;
    return static_cast<int>(kernels_.size()) - 1;
  }

  std::vector<Kernel> take() && { return std::move(kernels_); }

 private:
  std::vector<Kernel> kernels_;
  bool open_ = false;
};

bool completes_a_gradient(const Module& module, int kernel) {
  return std::any_of(module.parameters.begin(), module.parameters.end(),
                     [&](const Parameter& parameter) { return parameter.ready_after == kernel; });
}

/// Where the module of a parameter ("attn.q_proj" of "attn.q_proj.weight") stands in
/// `registration`.
auto registered(const std::string& parameter, const std::vector<std::string_view>& registration) {
  const auto module = std::string_view(parameter).substr(0, parameter.rfind('.'));
  return std::find(registration.begin(), registration.end(), module);
}

std::vector<ModuleMemory> memory_of(const std::vector<Module>& modules) {
  std::vector<ModuleMemory> memory;
  for (const Module& module : modules) {
    ModuleMemory& each = memory.emplace_back(
        ModuleMemory{module.kept, module.forward_working, module.backward_working, {}});
    for (const Parameter& parameter : module.parameters) each.gradients += parameter.size();
  }
  return memory;
}

/// A batch norm's buffers: running mean and variance in fp32, a counter in int64.
void add_statistics(Workload& workload, std::int64_t channels) {
  if (workload.buffers.empty()) workload.buffers.resize(2);
  workload.buffers[0].tensors += 2;
  workload.buffers[0].size += Bytes{2 * channels * 4};
  workload.buffers[1].tensors += 1;
  workload.buffers[1].size += Bytes{8};
}

}  // namespace

void append_layer(Workload& workload, const std::string& name, const std::string& prefix,
                  const std::vector<Module>& modules,
                  const std::vector<std::string_view>& registration) {
  Pass forward;
  for (const Module& module : modules)
    for (const Kernel& kernel : module.forward) forward.run(kernel, false);

  Pass backward;
  std::vector<Parameter> parameters;
  for (auto module = modules.rbegin(); module != modules.rend(); ++module) {
    std::vector<int> place;  // of the module's kernels in the layer's pass
    for (const Kernel& kernel : module->backward) {
      const int index = static_cast<int>(place.size());
      place.push_back(backward.run(kernel, completes_a_gradient(*module, index)));
    }
    if (module->statistics > 0) add_statistics(workload, module->statistics);
    std::vector<Parameter> trained = module->parameters;
    for (Parameter& parameter : trained) {
      parameter.layer = static_cast<int>(workload.layers.size());
      parameter.ready_after = place.at(static_cast<std::size_t>(parameter.ready_after));
    }
    parameters.insert(parameters.begin(), trained.begin(), trained.end());
  }
  std::stable_sort(parameters.begin(), parameters.end(),
                   [&](const Parameter& a, const Parameter& b) {
                     return registered(a.name, registration) < registered(b.name, registration);
                   });
  for (Parameter& parameter : parameters) parameter.name.insert(0, prefix);

  std::move(parameters.begin(), parameters.end(), std::back_inserter(workload.parameters));
  workload.layers.push_back(
      {name, std::move(forward).take(), std::move(backward).take(), memory_of(modules)});
}

void require_positive(std::int64_t value, std::string_view what) {
  if (value < 1)
    throw std::invalid_argument(fmt::format("{} must be positive, got {}", what, value));
}

void require_countable(std::string_view what, const std::vector<std::int64_t>& extents) {
  double elements = 1;
  for (const std::int64_t extent : extents) elements *= static_cast<double>(extent);
  if (elements > 0x1p48)
    throw std::invalid_argument(fmt::format("{} would hold {:.3g} elements", what, elements));
}

}  // namespace ddpsim
