#include "model/workload/layer_builder.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {

void append(Modules& modules, Modules more) {
  std::move(more.begin(), more.end(), std::back_inserter(modules));
}

Kernel ModuleMaker::gemm(std::string name, const Gemm& shape, const ProductCall& product,
                         Pass pass) const {
  const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
  Kernel kernel = gemm(std::move(name), shape, shape.batch * elements);
  kernel.parts =
      parts_of(shape, compute_, shape.batch * elements * size_of(computed_type()), product, pass);
  return kernel;
}

Kernel ModuleMaker::gemm(std::string name, const Gemm& shape, std::int64_t elements) const {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.gemm = shape;
  kernel.traffic = elements * size_of(dtype_);
  kernel.calls = 1;
  kernel.type = compute_;
  return kernel;
}

Kernel ModuleMaker::eager(std::string name, const std::vector<EagerKernels>& runs,
                          Pass pass) const {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.type = dtype_;
  kernel.launches = 0;
  for (const EagerKernels& run : runs) {
    const double bytes = static_cast<double>(run.elements) *
                         static_cast<double>(size_of(run.type.value_or(dtype_)).count);
    for (const EagerKernel& each : run.passes) {
      if (!each.on_cpu) continue;
      ++kernel.launches;
      kernel.traffic += Bytes{std::llround(each.passes * bytes)};
    }
  }
  kernel.calls = kernel.launches;
  kernel.parts = parts_of(runs, pass, dtype_);
  return kernel;
}

EagerKernels ModuleMaker::to_computed(std::int64_t elements) const {
  EagerKernels cast{elements, {}, computed_type()};
  if (casts() && elements > 0) cast.passes = {eager::of(Call::cast, 1 + stored_passes())};
  return cast;
}

EagerKernels ModuleMaker::to_stored(std::int64_t elements) const {
  EagerKernels cast{elements, {}, dtype_};
  if (casts() && elements > 0)
    cast.passes = {eager::of(Call::cast, {1 + computed_passes(), PatternKind::widening})};
  return cast;
}

Module class_cross_entropy(const ModuleMaker& make, const std::string& name, std::int64_t rows,
                           std::int64_t classes) {
  using namespace eager;
  const std::int64_t logits = rows * classes;
  const DType type = make.computed_type();
  const auto softmax = [&](double passes) {
    return of(Call::softmax, {passes, PatternKind::log_softmax, rows, classes});
  };
  Module module;
  module.forward = {
      make.eager(name, {{logits, {softmax(2)}, type}, make.to_stored(logits), {logits, {0}}})};
  module.backward = {make.eager(name + ".grad",
                                {{logits, {only_gpu(again(fill(0))), fill(1), follows(0)}},
                                 make.to_computed(logits),
                                 {logits, {backward(softmax(3))}, type}},
                                Pass::backward)};
  module.forward_working = make.stored(logits);
  module.backward_working = make.stored(2 * logits);
  module.kept = logits * Bytes{4};  // log_softmax's result, in fp32
  module.calls = 1;
  return module;
}

Module frozen(Workload& workload, Module module) {
  for (const Parameter& parameter : module.parameters) workload.frozen += parameter.size();
  module.parameters.clear();
  module.backward.clear();
  module.kept = module.backward_working = Bytes{};
  return module;
}

Module with_calls(Module module, int calls, int views) {
  module.calls += calls;
  module.views += views;
  return module;
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
  if (!backward.passes.empty())
    module.backward = {eager(name + ".grad", {backward}, Pass::backward)};
  // A result, and backward its gradient and that of the input.
  module.forward_working = stored(forward.elements);
  module.backward_working = stored(2 * backward.elements);
  return module;
}

Module ModuleMaker::fork(const std::string& name, std::int64_t elements) const {
  return elementwise(name, {}, {elements, {eager::again(3)}});
}

namespace {

/// Operands that lie along k: forward, for the gradient of the input, and for that of the weight.
struct Along {
  int forward, input, weight;
};
Along along_k(LinearKind kind) {
  return kind == LinearKind::conv1d ? Along{1, 2, 0} : Along{2, 1, 0};
}

/// Views that a projection of a sequence of tokens makes around its product.
int views_of(LinearKind kind) {
  switch (kind) {
    case LinearKind::linear:
      return 1;
    case LinearKind::biased:
    case LinearKind::conv1d:
      return 2;
    case LinearKind::einsum:
      return 12;
  }
  return 0;
}

}  // namespace

Module ModuleMaker::linear(LinearKind kind, std::int64_t rows, std::int64_t in,
                           const std::vector<Projection>& projections, Operand operand,
                           Input input) const {
  const bool biased = kind == LinearKind::biased || kind == LinearKind::conv1d;
  const bool batched = kind == LinearKind::einsum;
  const bool to_input = input == Input::activation;
  const bool casts_input = casts() && operand == Operand::stored;
  const Call call = biased ? Call::linear : Call::product;
  const Along along = along_k(kind);
  Module module;
  for (const auto& [name, out] : projections) {
    if (casts())
      module.forward.push_back(
          eager(name + ".cast", {to_computed(casts_input ? rows * in : 0), to_computed(in * out),
                                 to_computed(biased ? out : 0)}));
    module.forward.push_back(
        gemm(name, {.m = rows, .n = out, .k = in}, {along.forward, call, batched}));
  }
  module.calls = static_cast<int>(projections.size());
  module.views = module.calls * views_of(kind);

  std::vector<EagerKernels> accumulate;
  if (to_input && projections.size() > 1)
    accumulate.push_back(
        {rows * in, std::vector<EagerKernel>(projections.size() - 1, eager::again(3))});
  const int kernels_each = 1 + (to_input ? 1 : 0) + (biased ? 1 : 0) + (casts() ? 1 : 0);
  for (auto projection = projections.rbegin(); projection != projections.rend(); ++projection) {
    const auto& [name, out] = *projection;
    std::vector<Kernel>& backward = module.backward;
    if (to_input)
      backward.push_back(gemm(name + ".grad_data", {.m = rows, .n = in, .k = out},
                              {along.input, call, batched}, Pass::backward));
    backward.push_back(gemm(name + ".grad_weight", {.m = out, .n = in, .k = rows},
                            {along.weight, call, batched}, Pass::backward));
    if (biased)
      backward.push_back(eager(name + ".grad_bias",
                               {{rows * out,
                                 {eager::of(Call::linear, eager::sum_of_rows(1, rows, out))},
                                 computed_type()}},
                               Pass::backward));
    if (casts())
      backward.push_back(eager(name + ".grad_cast",
                               {to_stored(in * out), to_stored(biased ? out : 0),
                                to_stored(casts_input && to_input ? rows * in : 0)},
                               Pass::backward));
    if (kind == LinearKind::einsum) accumulate.push_back({in * out, {eager::strided(2)}});
  }
  if (!accumulate.empty())
    module.backward.push_back(
        eager(projections.front().name + ".accumulate", accumulate, Pass::backward));

  int ready_after = kernels_each * static_cast<int>(projections.size()) - 1;
  KernelRange forward{0, casts() ? 1 : 0};
  for (const auto& [name, out] : projections) {
    const bool in_first = kind == LinearKind::conv1d, is_first = forward.first == 0;
    const auto add = [&](const std::string& suffix, std::vector<std::int64_t> shape) {
      Parameter& made =
          module.parameters.emplace_back(parameter(name + suffix, std::move(shape), ready_after));
      made.forward = forward;
      made.backward = {ready_after - kernels_each + 1, ready_after};
      if (is_first) made.backward->last = static_cast<int>(module.backward.size()) - 1;
    };
    add(".weight", {in_first ? in : out, in_first ? out : in});
    if (biased) add(".bias", {out});
    ready_after -= kernels_each;
    forward = {forward.last + 1, 2 * forward.last + 1 - forward.first};
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

/// Kernels in the order they run; neighbours that only move memory are one.
class LayerPass {
 public:
  /// Returns the kernel's index. `closed`: a gradient is complete here, so the next is a kernel
  /// apart.
  /// `waiting`: what the host does before.
  int run(const Kernel& kernel, bool closed, Duration waiting) {
    const std::size_t merged = kernels_.empty() ? 0 : kernels_.back().parts.size();
    std::size_t first = 0;  // of its parts
    if (open_ && !kernel.gemm) {
      Kernel& last = kernels_.back();
      last.name += "+" + kernel.name;
      last.traffic += kernel.traffic;
      last.launches += kernel.launches;
      last.calls += kernel.calls;
      last.parts.insert(last.parts.end(), kernel.parts.begin(), kernel.parts.end());
      first = merged;
    } else {
      kernels_.push_back(kernel);
    }
    if (!kernel.parts.empty()) kernels_.back().parts[first].host += waiting;
    open_ = !kernel.gemm && !closed;
    return static_cast<int>(kernels_.size()) - 1;
  }

  int next() const { return static_cast<int>(kernels_.size()); }
  std::vector<Kernel> take() && { return std::move(kernels_); }

 private:
  std::vector<Kernel> kernels_;
  bool open_ = false;
};

int gradients_complete(const Module& module, int kernel) {
  return static_cast<int>(
      std::count_if(module.parameters.begin(), module.parameters.end(),
                    [&](const Parameter& parameter) { return parameter.ready_after == kernel; }));
}

/// Kernels of a module, which are at those places in a pass of its layer.
std::optional<KernelRange> placed(const std::optional<KernelRange>& own,
                                  const std::vector<int>& places) {
  if (places.empty()) return std::nullopt;
  if (!own) return KernelRange{places.front(), places.back()};
  return KernelRange{places.at(static_cast<std::size_t>(own->first)),
                     places.at(static_cast<std::size_t>(own->last))};
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
    ModuleMemory& each = memory.emplace_back();
    each.kept = module.kept;
    each.forward_working = module.forward_working;
    each.backward_working = module.backward_working;
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

/// A batch norm that is not trained: weight, bias, mean and variance are buffers in fp32.
void add_frozen_statistics(Workload& workload, std::int64_t channels) {
  if (workload.buffers.empty()) workload.buffers.resize(1);
  workload.buffers[0].tensors += 4;
  workload.buffers[0].size += Bytes{4 * channels * 4};
}

}  // namespace

void append_layer(Workload& workload, const std::string& name, const std::string& prefix,
                  const std::vector<Module>& modules,
                  const std::vector<std::string_view>& registration) {
  std::vector<ModuleMemory> memory = memory_of(modules);
  LayerPass forward;
  std::vector<std::vector<int>> forward_places(modules.size());  // [module][kernel] in the pass
  Duration waiting{};
  for (std::size_t m = 0; m < modules.size(); ++m) {
    const Module& module = modules[m];
    if (module.frozen_statistics > 0) add_frozen_statistics(workload, module.frozen_statistics);
    waiting += module.calls * module_time + module.views * view_time;
    memory[m].first_forward = forward.next();
    for (std::size_t k = 0; k < module.forward.size(); ++k) {
      const int place = forward.run(module.forward[k], false, std::exchange(waiting, {}));
      forward_places[m].push_back(place);
      if (k == 0) memory[m].first_forward = place;
    }
  }

  LayerPass backward;
  std::vector<Parameter> parameters;
  for (auto module = modules.rbegin(); module != modules.rend(); ++module) {
    const auto number = static_cast<std::size_t>(modules.rend() - module) - 1;
    std::vector<int> place;  // of the module's kernels in the layer's pass
    const int next = backward.next();
    for (const Kernel& kernel : module->backward) {
      const int completed = gradients_complete(*module, static_cast<int>(place.size()));
      place.push_back(backward.run(kernel, completed > 0, completed * accumulate_time));
    }
    memory[number].first_backward = place.empty() ? next : place.front();
    if (module->statistics > 0) add_statistics(workload, module->statistics);
    std::vector<Parameter> trained = module->parameters;
    for (Parameter& parameter : trained) {
      parameter.layer = static_cast<int>(workload.layers.size());
      parameter.ready_after = place.at(static_cast<std::size_t>(parameter.ready_after));
      parameter.forward = placed(parameter.forward, forward_places[number]);
      parameter.backward = placed(parameter.backward, place);
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
      {name, std::move(forward).take(), std::move(backward).take(), std::move(memory)});
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
