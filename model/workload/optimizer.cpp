#include "model/workload/optimizer.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace ddpsim {
namespace {

struct Law {
  std::string_view name;
  int passes;         ///< reads and writes of every element
  int operations;     ///< elementwise operations over all parameters
  int states;         ///< tensors kept, as large as the parameter
  int working;        ///< tensors taken while it works, as large as the parameter
  bool loop = false;  ///< one tensor after the other
  bool real = true;   ///< the backends have it
};

/// Passes by statement, reads + writes:
///   loop   m: mul 2, mul 2, add 3; v: mul 2, pow 2, mul 2, add 3;
///          update: mul 2, sqrt 2, add 2, div 3, sub 3; decay: mul 2, sub 3
///   adamw  decay mul 2, lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4
///   adam   as adamw, without the decay
///   fused  reads parameter, gradient, m, v; writes parameter, m, v
///   sgd    weight decay add 3, momentum mul 2 and add 3, update add 3; plain: update alone
///   lamb   norm of all gradients 1; norms of parameters 1; stage 1 reads parameter, gradient, m, v
///          and writes update, m, v: 7; norms of updates 1; stage 2: 3. Each norm has a second
///          kernel that adds up. The update takes the place of the gradient.
///   rmsprop   square mean mul 2, addcmul 3, sqrt 2, add 2, addcdiv 4
///   novograd  norms of gradients 1, with a second kernel that adds up; the update reads parameter,
///          gradient and m, and writes parameter and m: 5
///   lion   decay mul 2; the update mul 2, mul 2, add 3, sign 2, add 3; m: mul 2, add 3
/// Taken while they work: by foreach's Adam and RMSprop the square roots, by SGD the gradients with
/// decay; by the loops two products and their sum.
constexpr std::array<Law, all_optimizers.size()> laws{{{"none", 0, 0, 0, 0},
                                                       {"sgd", 11, 4, 1, 1},
                                                       {"sgd-plain", 3, 1, 0, 0, false, false},
                                                       {"adam", 18, 7, 2, 1},
                                                       {"adamw", 20, 8, 2, 1},
                                                       {"adamw-fused", 7, 1, 2, 0},
                                                       {"adamw-loop", 33, 14, 2, 3, true},
                                                       {"lamb", 13, 8, 2, 0, false, false},
                                                       {"adafactor", 0, 0, 0, 1, true, false},
                                                       {"muon", 0, 0, 0, 2, true, false},
                                                       {"rmsprop", 13, 5, 1, 1, false, false},
                                                       {"novograd", 6, 3, 1, 0, false, false},
                                                       {"lion", 19, 8, 1, 3, true, false},
                                                       {"adam-8bit", 0, 0, 0, 0, true, false}}};

const Law& law_of(Optimizer optimizer) {
  return laws[static_cast<std::size_t>(optimizer)];
}

constexpr std::int64_t elements_per_block = 65536, blocks_per_launch = 320,
                       tensors_per_launch = 110;

/// Launches of one foreach operation over `tensors` tensors with `elements` elements together.
std::int64_t cuts(std::int64_t elements, std::int64_t tensors) {
  const auto pieces = [](std::int64_t whole, std::int64_t piece) {
    return (whole + piece - 1) / piece;
  };
  return std::max({pieces(elements, elements_per_block * blocks_per_launch),
                   pieces(tensors, tensors_per_launch), std::int64_t{1}});
}

Kernel update_of(std::string name, Bytes traffic, std::int64_t launches) {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.traffic = traffic;
  kernel.launches = static_cast<int>(launches);
  return kernel;
}

/// For a tensor of two dimensions or more Adafactor keeps a value for each row and each column of
/// its matrices, in place of one for each element.
bool is_factored(const Parameter& parameter) {
  return parameter.shape.size() > 1;
}

/// Passes over a matrix: norm 1; norms of rows and columns 1 each, and 3 small operations of
/// either; outer product 1, division 2 after 2 small ones; clamp 2, rsqrt 2, mul 3, norm 1, add 3.
/// Over a vector: norm 1, square 2, lerp 3, clone 2, clamp 2, rsqrt 2, mul 3, norm 1, add 3.
Kernel adafactor_update(const Parameter& parameter) {
  const bool factored = is_factored(parameter);
  return update_of("adafactor." + parameter.name, (factored ? 17 : 19) * parameter.size(),
                   factored ? 18 : 9);
}

/// bitsandbytes keeps the states of tensors that are not small in a byte an element, with a scale
/// for every block.
constexpr std::int64_t least_in_8_bits = 4096, elements_per_scale = 256;

Bytes states_of_8bit_adam(const Parameter& parameter) {
  const std::int64_t elements = parameter.elements(), states = 2;
  if (elements < least_in_8_bits) return states * elements * size_of(DType::fp32);
  const std::int64_t scales = (elements + elements_per_scale - 1) / elements_per_scale;
  return states * (Bytes{elements} + scales * size_of(DType::fp32));
}

Kernel update_of_8bit_adam(const Parameter& parameter) {
  return update_of("adam-8bit." + parameter.name,
                   3 * parameter.size() + 2 * states_of_8bit_adam(parameter), 1);
}

bool is_muons(const Parameter& parameter, const Workload& workload) {
  return parameter.shape.size() == 2 && parameter.layer > 0 &&
         static_cast<std::size_t>(parameter.layer) + 1 < workload.layers.size();
}

/// Momentum (lerp 3, lerp 3), a copy in bf16, its norm, clamp and division; five times X X^T,
/// b A + c A A, and a X + B X, in bf16 and of the orientation with fewer rows; decay 2 and the
/// update, which reads bf16.
void add_muon_update(std::vector<Kernel>& kernels, const Parameter& parameter) {
  constexpr int newton_schulz_steps = 5;
  const std::int64_t rows = std::min(parameter.shape[0], parameter.shape[1]);
  const std::int64_t columns = std::max(parameter.shape[0], parameter.shape[1]);
  const Bytes half = parameter.elements() * size_of(DType::bf16), whole = parameter.size();
  const auto product = [&](std::string_view part, const Gemm& shape, std::int64_t moved) {
    Kernel kernel;
    kernel.name = "muon." + parameter.name + "." + std::string(part);
    kernel.gemm = shape;
    kernel.traffic = moved * size_of(DType::bf16);
    kernel.type = DType::bf16;
    kernels.push_back(kernel);
  };
  const std::int64_t square = rows * rows, all = rows * columns;
  kernels.push_back(update_of("muon." + parameter.name + ".momentum", 7 * whole + 4 * half, 6));
  for (int step = 0; step < newton_schulz_steps; ++step) {
    product("gram", {rows, rows, columns}, 2 * all + square);
    product("polynomial", {rows, rows, rows}, 4 * square);
    product("apply", {rows, columns, rows}, square + 3 * all);
  }
  kernels.push_back(update_of("muon." + parameter.name + ".update", 4 * whole + half, 2));
}

std::vector<Kernel> muon_kernels(const Workload& workload) {
  std::vector<Kernel> kernels;
  Bytes others;
  std::int64_t elements = 0, tensors = 0;
  for (const Parameter& parameter : workload.parameters) {
    if (is_muons(parameter, workload)) {
      add_muon_update(kernels, parameter);
      continue;
    }
    others += parameter.size();
    elements += parameter.elements();
    tensors += 1;
  }
  const Law& adamw = law_of(Optimizer::adamw);
  if (tensors > 0)
    kernels.push_back(
        update_of("muon.adamw", adamw.passes * others, adamw.operations * cuts(elements, tensors)));
  return kernels;
}

/// What an optimizer's step costs the host for each tensor, where a launch takes it 6 us, besides
/// the launches: its own code in a loop of steps (tests/data/h200/operations.csv.gz, 300 small
/// tensors: AdamW 7.9 us, SGD with momentum 2.4, without 1.2, fused AdamW 2.3).
Duration host_of_tensor(Optimizer optimizer) {
  const auto us = [](double count) { return from_seconds(1e-6 * count); };
  switch (optimizer) {
    case Optimizer::adam:
    case Optimizer::adamw:
      return us(7.9);
    case Optimizer::sgd:
      return us(2.4);
    case Optimizer::sgd_plain:
      return us(1.2);
    case Optimizer::adamw_fused:
    case Optimizer::lamb:
      return us(2.3);
    case Optimizer::adamw_loop:
    case Optimizer::adafactor:
    case Optimizer::muon:
    case Optimizer::lion:
    case Optimizer::adam_8bit:  // loops over tensors, whose calls are launches
    case Optimizer::rmsprop:
    case Optimizer::novograd:  // not measured
    case Optimizer::none:
      return Duration::zero();
  }
  return Duration::zero();
}

}  // namespace

std::string_view name_of(Optimizer optimizer) {
  return law_of(optimizer).name;
}

std::vector<Kernel> optimizer_kernels(Optimizer optimizer, const Workload& workload) {
  std::vector<Kernel> kernels;
  const Law& law = law_of(optimizer);
  if (optimizer == Optimizer::none) return kernels;
  if (optimizer == Optimizer::muon) return muon_kernels(workload);
  if (law.loop) {
    const std::string name = optimizer == Optimizer::adamw_loop ? "adamw" : std::string(law.name);
    for (const Parameter& parameter : workload.parameters) {
      if (optimizer == Optimizer::adafactor)
        kernels.push_back(adafactor_update(parameter));
      else if (optimizer == Optimizer::adam_8bit)
        kernels.push_back(update_of_8bit_adam(parameter));
      else
        kernels.push_back(
            update_of(name + "." + parameter.name, law.passes * parameter.size(), law.operations));
    }
    return kernels;
  }
  const std::int64_t tensors = static_cast<std::int64_t>(workload.parameters.size());
  Kernel update = update_of(std::string(law.name), law.passes * workload.gradient_size(),
                            law.operations * cuts(workload.elements(), tensors));
  update.tensors = static_cast<int>(tensors);
  update.call = tensors * host_of_tensor(optimizer);
  return {update};
}

std::vector<Kernel> clip_kernels(const Workload& workload) {
  const Bytes all = workload.gradient_size();
  const auto tensors = static_cast<std::int64_t>(workload.parameters.size());
  const std::int64_t launches = cuts(workload.elements(), tensors);
  const Bytes norms = tensors * size_of(DType::fp32);
  return {update_of("clip.norms", all + norms, launches + 2),
          update_of("clip.factor", 2 * norms, 6), update_of("clip.scale", 2 * all, launches)};
}

Caller optimizer_caller(Optimizer optimizer) {
  return law_of(optimizer).loop ? Caller::python_loop : Caller::library;
}

Bytes optimizer_state(Optimizer optimizer, const Workload& workload, std::size_t index) {
  const Parameter& parameter = workload.parameters[index];
  if (optimizer == Optimizer::muon)
    return (is_muons(parameter, workload) ? 1 : law_of(Optimizer::adamw).states) * parameter.size();
  if (optimizer == Optimizer::adam_8bit) return states_of_8bit_adam(parameter);
  // NovoGrad's second moment is one number for each tensor.
  if (optimizer == Optimizer::novograd) return parameter.size() + size_of(DType::fp32);
  if (optimizer != Optimizer::adafactor) return law_of(optimizer).states * parameter.size();
  if (!is_factored(parameter)) return parameter.size();
  const std::int64_t last = parameter.shape.back();
  const std::int64_t before_last = parameter.shape[parameter.shape.size() - 2];
  return (parameter.elements() / last + parameter.elements() / before_last) *
         size_of(parameter.dtype);
}

Bytes optimizer_state(Optimizer optimizer, const Workload& workload) {
  Bytes sum;
  for (std::size_t p = 0; p < workload.parameters.size(); ++p)
    sum += optimizer_state(optimizer, workload, p);
  return sum;
}

Bytes optimizer_working(Optimizer optimizer, const Workload& workload,
                        std::span<const std::int32_t> parameters) {
  const Law& law = law_of(optimizer);
  Bytes most, together;
  for (const std::int32_t each : parameters) {
    const Parameter& parameter = workload.parameters[static_cast<std::size_t>(each)];
    if (!law.loop)
      together += law.working * parameter.size();
    else if (optimizer == Optimizer::muon && !is_muons(parameter, workload))
      together += law_of(Optimizer::adamw).working * parameter.size();
    else
      most = std::max(most, law.working * parameter.size());
  }
  return std::max(most, together);
}

bool runs_on_ranks(Optimizer optimizer) {
  return law_of(optimizer).real;
}

std::size_t state_slices(Optimizer optimizer) {
  if (optimizer == Optimizer::none || !runs_on_ranks(optimizer)) return 0;
  return optimizer == Optimizer::sgd ? 1 : 2;
}

}  // namespace ddpsim
