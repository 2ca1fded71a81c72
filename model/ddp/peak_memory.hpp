#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/ddp/training.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// The part of a step in which a rank holds the most memory.
enum class PeakMoment : std::uint8_t { forward, backward, reduction, optimizer };
constexpr std::string_view name_of(PeakMoment moment) {
  constexpr std::array<std::string_view, 4> names{"forward", "backward", "reduction", "optimizer"};
  return names[static_cast<std::size_t>(moment)];
}

/// What a rank holds at the peak of a step beside what stays the same throughout: with StepMemory's
/// parameters, module_buffers, frozen, inputs, workspaces and optimizer it sums to the peak.
struct PeakParts {
  Bytes gradients;
  Bytes buckets;
  Bytes comm_hook;
  Bytes activations;  ///< those that autograd keeps at that moment
  Bytes working;      ///< what the operation that runs then takes for itself

  Bytes sum() const { return gradients + buckets + comm_hook + activations + working; }
};

/// Device memory that a step takes of one rank, in the steady state.
struct StepMemory {
  Bytes parameters;
  Bytes module_buffers;  ///< statistics of batch norms
  Bytes frozen;          ///< parameters that are not trained, tensors that modules hold
  Bytes inputs;          ///< the batch, where it is known
  Bytes workspaces;      ///< what cuBLAS keeps of the allocator's memory
  Bytes gradients;       ///< without those that are views of their buckets
  Bytes buckets;         ///< DDP's, for good; `flat`'s one, from the end of backward on
  /// Its state, of the rank that holds most of it; none: not known, where an update was measured
  /// and nothing names the optimizer.
  std::optional<Bytes> optimizer;
  Bytes comm_hook;  ///< what it keeps, and what one bucket takes for a while
  /// What autograd keeps when the forward pass of a micro-batch ends; none: not known.
  std::optional<Bytes> activations;
  Bytes peak;  ///< at most at one time, of all that is known
  PeakMoment at = PeakMoment::forward;
  PeakParts at_peak;

  /// Is the peak all that a rank holds?
  bool is_whole() const { return activations && optimizer; }
};

/// The most a rank holds at one time: not the sum of everything, for activations go while gradients
/// come, and both are gone or complete when the optimizer works.
///
///     forward     what stays, and activations as they pile up; gradients too if they are kept from
///                 before (several micro-batches, gradients that are views of buckets, torch 1.13)
///     backward    activations of the modules before, gradients of those behind, what is under way
///     reduction   all gradients; `flat`'s bucket
///     optimizer   all gradients, and what the optimizer takes beside its state
///
/// What stays: parameters (frozen ones too), buffers, optimizer state, DDP's buckets, a comm hook's
/// state, the batch of a described model, workspaces of cuBLAS. Left out: the CUDA context and the
/// buffers of NCCL (which grow with the number of channels), most workspaces of cuDNN, what the
/// allocator cannot use for fragmentation, and what the user's hooks hold.
///
/// Source: PyTorch's autograd and optimizers op by op (model/workload); distributed.py and
/// reducer.cpp for buckets; zero_redundancy_optimizer.py for whose the state is. Held against what
/// the allocator of an H200 counted: tests/experiments/peak_memory.py.
StepMemory step_memory(const Workload& workload, Optimizer optimizer, const Training& training,
                       const Schedule& schedule);

/// What cuBLAS takes of PyTorch's allocator for its workspaces, once for the thread of forward and
/// once for autograd's: 32 MiB each since Hopper, 8.125 MiB on earlier GPUs; none on what is no
/// CUDA device. Source: aten/src/ATen/cuda/CublasHandlePool.cpp (getChosenWorkspaceSize).
Bytes cublas_workspaces(int compute_capability);

/// Does a step fit on a device? With a margin over what is reckoned, for a wrong yes is the worst
/// answer: the CUDA context, and what the allocator has reserved and cannot use.
inline constexpr double memory_margin = 0.05;  ///< of the peak
inline constexpr Bytes context_memory{512 << 20};
bool fits(Bytes peak, Bytes device);

}  // namespace ddpsim
