#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/parallel/training.hpp"
#include "model/program/memory_along.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// The part of a step in which a rank holds the most memory.
enum class PeakMoment : std::uint8_t { forward, backward, reduction, optimizer };
constexpr std::string_view name_of(PeakMoment moment) {
  constexpr std::array<std::string_view, 4> names{"forward", "backward", "reduction", "optimizer"};
  return names[static_cast<std::size_t>(moment)];
}

/// Device memory that a step takes of the rank that takes the most, in the steady state.
struct StepMemory {
  program::MemoryByKind most;     ///< of each kind at most at one time
  program::MemoryByKind at_peak;  ///< they sum to the peak
  Bytes peak;                     ///< at most at one time, of all that is known
  Bytes reserved;                 ///< by PyTorch's allocator for that rank (reserved_for)
  bool knows_activations = false;
  /// Not where an update was measured and nothing names the optimizer.
  bool knows_optimizer = false;

  PeakMoment at = PeakMoment::forward;
  std::int32_t layer = nobody;  ///< whose pass is under way then
  std::size_t program = 0;      ///< of the job, by the ranks that have it
  std::uint32_t before = 0;     ///< the task that the host issues next

  /// Is the peak all that a rank holds?
  bool is_whole() const { return knows_activations && knows_optimizer; }
};

/// The memory of a step along its job (with_memory), at its peak: not the sum of everything, for
/// activations go while gradients come, and both are gone or complete when the optimizer works.
///
/// Left out: the CUDA context and the buffers of NCCL (which grow with the number of channels),
/// most workspaces of cuDNN, what the allocator cannot use for fragmentation, which is not in
/// `reserved` either, and what the user's hooks hold.
StepMemory step_memory(const Workload& workload, Optimizer optimizer, const Training& training,
                       const program::Job& job);

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
