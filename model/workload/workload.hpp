#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"
#include "model/workload/collective_operation.hpp"
#include "model/workload/device_kernel.hpp"
#include "model/workload/gemm.hpp"

namespace ddpsim {

/// What a kernel costs by the law of its class on the device it is priced for (model/kernel).
struct ClassCost {
  Duration work{};            ///< on the device, gaps behind its launches included
  Duration host{};            ///< of the reference host, to enqueue it in a step
  float memory_fraction = 1;  ///< how much of `work` memory bandwidth bounds

  bool operator==(const ClassCost&) const = default;
};

/// What a device runs in one go: one kernel, or a run of small ones of the same purpose (the eager
/// elementwise kernels of a normalisation, say), which the host enqueues one by one.
struct Kernel {
  std::string name;          ///< "attn.q_proj", "attn.q_proj.grad_weight"
  std::optional<Gemm> gemm;  ///< none: the kernel only moves memory
  Bytes traffic;     ///< bytes read from and written to device memory, all launches together
  int launches = 1;  ///< kernels the host enqueues for it, at least 1
  /// Calls of PyTorch that launch them; 0: as many.
  int calls = 0;
  DType type = DType::fp32;  ///< how a GEMM multiplies
  double recomputed = 0;     ///< share of a GEMM that the forward pass had computed, and not kept
  /// Tensors that a multi-tensor kernel of an optimizer goes over; 0: it is none.
  int tensors = 0;
  /// The host's time for its call besides launches (6 us each), measured in a loop of such calls.
  Duration call{};
  std::optional<Duration> time;  ///< measured; stands in place of the cost law
  /// What a GPU runs for it, in order, as far as it is known by class; empty: it is not.
  std::vector<KernelPart> parts;
  std::optional<ClassCost> by_class;  ///< of the parts, on a device; goes before the roofline
  /// Is a normalisation, softmax or the like among the parts, or was one before they were priced?
  bool reduces_rows = false;
};

/// Does the kernel reduce rows of its input and go over them again, as far as its parts are known?
bool reduces_rows(const Kernel& kernel);

/// Kernels of a pass, one behind the other; the last one is among them.
struct KernelRange {
  int first = 0, last = 0;

  bool operator==(const KernelRange&) const = default;
};

/// A tensor that is trained; its gradient has the same shape and type.
struct Parameter {
  std::string name;  ///< as PyTorch's named_parameters() spells it
  std::vector<std::int64_t> shape;
  DType dtype = DType::fp32;
  /// Index into Workload::layers of the layer whose backward completes its gradient.
  int layer = 0;
  /// Index into that layer's `backward`: the gradient is complete after this kernel.
  int ready_after = 0;
  bool sparse = false;  ///< an embedding with sparse gradients: reduced alone
  /// A sparse gradient's rows as they are sent: those that were used, each once, for Gloo coalesces
  /// (seen on the wire with torch 1.13); 0: all of the table's.
  std::int64_t sparse_rows = 0;
  bool unused = false;  ///< no gradient reaches it in this step (nor on any other rank)
  /// The kernels of that layer's passes that its module runs; none: not known.
  std::optional<KernelRange> forward{}, backward{};

  std::int64_t elements() const;
  Bytes size() const;
  Bytes sparse_values() const;   ///< of a sparse gradient: its rows
  Bytes sparse_indices() const;  ///< and 8 bytes to say which row each is
};

/// A tensor that is not trained, as far as it matters to who shards it.
struct FrozenParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::fp32;
  int layer = 0;  ///< index into Workload::layers: whose passes take it
  std::optional<KernelRange> forward{}, backward{};  ///< as of a parameter that is trained

  Bytes size() const;
};

/// What a module of a layer takes of the device's memory, besides parameters.
struct ModuleMemory {
  /// What autograd keeps of its forward pass until its backward pass: each tensor once, with the
  /// module that keeps it first.
  Bytes kept;
  /// What its passes hold beside that for a while: results that are still needed, and gradients on
  /// their way.
  Bytes forward_working{}, backward_working{};
  Bytes gradients{};  ///< of its parameters, which its backward pass makes
  /// The most that is alive at one time in its passes, of the whole step: what is kept by then and
  /// what the passes hold beside it, gradients of parameters not counted. None: kept and working.
  std::optional<Bytes> forward_peak{}, backward_peak{};
  /// The kernels of the layer's passes with which its own begin.
  int first_forward = 0, first_backward = 0;
};

struct Layer {
  std::string name;
  std::vector<Kernel> forward;            ///< in the order the host enqueues them
  std::vector<Kernel> backward;           ///< likewise, of this layer's backward pass
  std::vector<ModuleMemory> memory = {};  ///< of its modules in forward order; empty: not known
};

/// Tensors that are not trained but kept alike: DDP broadcasts rank 0's before every synchronised
/// forward pass, those of one type together.
struct BufferGroup {
  int tensors = 0;
  Bytes size;
};

/// As DDP broadcasts them: a group is cut after the tensor with which it reaches `most`; its
/// tensors are taken as equally large. Source: distributed.py (broadcast_bucket_size), comm.cpp.
inline constexpr Bytes most_broadcast{250 << 20};
std::vector<BufferGroup> cut(const std::vector<BufferGroup>& groups, Bytes most = most_broadcast);

/// A collective that the network itself sends, in the communicator of DistributedDataParallel: a
/// synchronised batch norm's, or one of a loss that gathers. What follows waits for its result.
struct OwnCollective {
  using Kind = CollectiveOperation;
  Kind kind = Kind::all_reduce;
  Bytes size;             ///< that a rank gives
  bool backward = false;  ///< in which pass of the layer
  int layer = 0;
  int after = 0;  ///< index into that pass: behind this kernel
};

/// The network being trained, at a given batch and sequence, as one rank sees it.
struct Workload {
  std::string name;
  std::string source;                      ///< where its numbers come from
  std::vector<Layer> layers;               ///< in forward order; backward runs them last to first
  std::vector<Parameter> parameters;       ///< in registration order
  std::vector<BufferGroup> buffers;        ///< by type; a batch norm has statistics and a counter
  std::vector<OwnCollective> collectives;  ///< those of one kernel in the order they are sent
  Bytes frozen;  ///< of what lives on the device beside them: parameters that are not trained
  std::vector<FrozenParameter> frozen_parameters;  ///< those of `frozen` that are known one by one
  Bytes inputs;                                    ///< of the batch; zero: not known
  Bytes workspaces;          ///< that libraries keep for their kernels from the first one on
  std::vector<int> arrival;  ///< parameter indices in the order their hooks fire; empty: derived
  /// Measured time of one optimizer step, if the source gives it; of clipping too, if there is any.
  std::optional<Duration> optimizer;
  /// Do the kernels say what of them is computed a second time?
  bool tells_recomputed = true;
  bool clip_gradients = false;  ///< by the norm of all, before the optimizer updates parameters
  /// Measured: by how much copying one gradient out of its bucket lengthens the step, whether the
  /// device or the host behind it takes that long. None: the law of copies.
  std::optional<Duration> copy_back;
  /// Measured: what a step spends outside of its passes (loading data, logging, zero_grad), the
  /// device idle.
  Duration outside{};
  /// Standard deviation of a rank's computation from one step to the next, as a share of it.
  double step_spread = 0;
  /// Measured: why its times are of little use, a sentence each.
  std::vector<std::string> doubts;
  /// The same network as it runs where parameters are cast to another type before its passes: the
  /// `dtype` of its parameters is that type. None: nobody asks, or they are of that type already.
  std::shared_ptr<const Workload> cast{};

  std::int64_t elements() const;  ///< of all parameters
  Bytes gradient_size() const;
};

/// Is every kernel's work known, or are there some (of a workload profile) of which only the time
/// is?
bool has_shapes(const Workload& workload);

/// Was the time of any kernel of forward or backward measured?
bool has_measured_kernels(const Workload& workload);

/// The number format in which most multiplications of a step are done; none: no product is known.
std::optional<DType> main_format(const Workload& workload);

/// Is it known what autograd keeps of every layer, or are there some (of a workload profile) of
/// which only the time is?
bool has_memory(const Workload& workload);

/// Parameter indices in the order their gradients become ready: by the backward kernel that
/// completes them; several of one kernel in reverse registration order, as PyTorch's engine
/// delivers them (reference: pytorch-ddp section 2.5). A workload's own `arrival`, where given,
/// goes first. Unused ones, which never become ready, come last and ascending.
std::vector<int> arrival_order(const Workload& workload);

/// Throws std::invalid_argument, naming the parameter or kernel, if an index points nowhere, a
/// shape or a size is not positive, a name repeats, a range of kernels leaves its pass, or
/// `arrival` is not a permutation.
void check(const Workload& workload);

}  // namespace ddpsim
