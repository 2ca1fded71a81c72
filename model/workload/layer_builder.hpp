#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/workload/eager_kernels.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// One module of a network: what it runs forward, what it runs backward, what it trains. Names
/// are relative to its layer ("attn.q_proj"); a parameter's `ready_after`, and its kernels where
/// not all of the module's are its own, count in these passes.
struct Module {
  std::vector<Kernel> forward;
  std::vector<Kernel> backward;
  std::vector<Parameter> parameters;
  std::int64_t statistics = 0;                    ///< channels of a batch norm; 0 elsewhere
  std::int64_t frozen_statistics = 0;             ///< likewise of one that is not trained
  Bytes kept, forward_working, backward_working;  ///< as in ModuleMemory
  /// Modules of PyTorch that its forward pass calls, those around it that begin with it among them,
  /// and views of tensors: both take the host's time alone.
  int calls = 0, views = 0;
};
using Modules = std::vector<Module>;
void append(Modules& modules, Modules more);

enum class LinearKind : std::uint8_t {
  linear,  ///< nn.Linear without bias
  biased,  ///< nn.Linear
  conv1d,  ///< Hugging Face's Conv1D: biased, its weight [in, out]
  einsum,  ///< a bias-free weight under einsum: its gradient comes transposed and is copied over
};

enum class Input : std::uint8_t {
  activation,
  data,    ///< the batch's own, in the format of parameters: needs no gradient
  frozen,  ///< what frozen modules made, in the format of products: needs none either
};

/// The tensor a projection reads, which autograd keeps until backward has made the weight's
/// gradient of it.
enum class Operand : std::uint8_t {
  stored,  ///< kept by nobody else, in the format parameters are stored in; autocast casts it, for
           ///< each projection anew
  computed,  ///< kept by nobody else, in the format products come in
  kept,      ///< the module before keeps it, in that format
};

struct Projection {
  std::string name;
  std::int64_t out = 0;
};

/// Makes the modules all networks share, in one pair of number formats.
class ModuleMaker {
 public:
  ModuleMaker(DType dtype, DType compute) : dtype_(dtype), compute_(compute) {}

  /// One matrix product; each operand is moved once, the result too: mk + kn + mn elements.
  Kernel gemm(std::string name, const Gemm& shape, const ProductCall& product,
              Pass pass = Pass::forward) const;
  /// A matrix product that moves `elements` instead (operands that overlap, results that stay
  /// inside), and whose parts are the caller's to say.
  Kernel gemm(std::string name, const Gemm& shape, std::int64_t elements) const;
  Kernel eager(std::string name, const std::vector<EagerKernels>& runs,
               Pass pass = Pass::forward) const;
  Parameter parameter(std::string name, std::vector<std::int64_t> shape, int ready_after = 0) const;

  /// Bytes of a tensor in the format of parameters, and in that of products: autocast makes it
  /// another one.
  Bytes stored(std::int64_t elements) const { return elements * size_of(dtype_); }
  Bytes computed(std::int64_t elements) const {
    return elements * size_of(casts() ? compute_ : dtype_);
  }
  DType stored_type() const { return dtype_; }
  DType computed_type() const { return casts() ? compute_ : dtype_; }
  /// Passes over a tensor as parameters are stored, counted in bytes of one as products come in, or
  /// the other way round: what a kernel over both formats moves.
  double stored_passes() const { return in_units(dtype_, computed_type()); }
  double computed_passes() const { return in_units(computed_type(), dtype_); }
  /// The multiplying format: TF32 where products of fp32 numbers are so.
  DType product_type() const { return compute_; }
  /// Casts of a tensor from the format of parameters to that of products, or back; nothing where
  /// both are one.
  EagerKernels to_computed(std::int64_t elements) const;
  EagerKernels to_stored(std::int64_t elements) const;
  /// Does autocast multiply copies of operands and weights, in 16 bits?
  bool casts() const { return size_of(compute_) < size_of(dtype_); }

  /// `forward` as kernel `name`, `backward` as "name.grad"; nothing where there are no passes.
  Module elementwise(const std::string& name, const EagerKernels& forward,
                     const EagerKernels& backward) const;
  /// Backward of a tensor that is used twice: one addition. (Forward costs nothing.)
  Module fork(const std::string& name, std::int64_t elements) const;

  /// Projections of one [rows, in] tensor. Backward runs the last one first: data gradient, weight
  /// gradient, bias gradient, after which weight and bias are ready. What PyTorch runs in between
  /// (adding up the data gradients, copying an einsum's weight gradients into place) is small and
  /// counted once, after all of them, as "first.accumulate". The network's own data gets no
  /// gradient. Under autocast the copies of the weights live as long as what is kept.
  Module linear(LinearKind kind, std::int64_t rows, std::int64_t in,
                const std::vector<Projection>& projections, Operand operand,
                Input input = Input::activation) const;

 private:
  static double in_units(DType type, DType unit) {
    return static_cast<double>(size_of(type).count) / static_cast<double>(size_of(unit).count);
  }

  DType dtype_;
  DType compute_;
};

/// Cross-entropy of so many rows of classes: log_softmax, nll_loss; backward fill, scatter,
/// log_softmax.
Module class_cross_entropy(const ModuleMaker& make, const std::string& name, std::int64_t rows,
                           std::int64_t classes);

/// The module where its parameters are not trained and its input needs no gradient: it runs forward
/// alone and keeps nothing. Adds its parameters to what the workload holds frozen.
Module frozen(Workload& workload, Module module);

/// The module, with so many more calls of modules and views.
Module with_calls(Module module, int calls, int views = 0);

/// Appends a layer that runs `modules` in order, and backward in reverse; its parameters are
/// named `prefix` + their own. They are registered in the order of the modules, or, where
/// PyTorch's differs, in that of their modules in `registration`.
///
/// Neighbours that only move memory become one kernel ("bn1+relu1"), unless a gradient is complete
/// in between: they differ in nothing but their number, which `launches` keeps.
void append_layer(Workload& workload, const std::string& name, const std::string& prefix,
                  const std::vector<Module>& modules,
                  const std::vector<std::string_view>& registration = {});

/// Throws std::invalid_argument, "`what` must be positive, got 0".
void require_positive(std::int64_t value, std::string_view what);

/// Throws std::invalid_argument if a tensor of those extents, `what`, is beyond any memory (2^48
/// elements): below, every sum over a layer stays inside 64 bits.
void require_countable(std::string_view what, const std::vector<std::int64_t>& extents);

}  // namespace ddpsim
