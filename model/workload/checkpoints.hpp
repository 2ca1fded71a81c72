#pragma once

#include "model/workload/workload.hpp"

namespace ddpsim {

/// Makes an activation checkpoint of the layer that was appended last: autograd keeps its input
/// alone, of so many bytes, and its backward pass runs its forward kernels again before its own.
/// Memory of its passes is then that of one module: forward needs what one of its modules keeps
/// beside what that one works with; backward needs all of it again.
/// What the host does besides (the state of random numbers is kept and put back) is not counted.
/// Source: torch.utils.checkpoint.checkpoint(use_reentrant=False)
void checkpoint_last_layer(Workload& workload, Bytes input);

/// Makes one of it that keeps, besides its input, what some operations gave: every second product
/// with a weight, the first one among them, in `type`, and attention, of `attention` bytes. Its
/// backward pass runs its other kernels again.
/// Source: torchtitan's selective activation checkpointing by operations.
void checkpoint_operations_of_last_layer(Workload& workload, Bytes input, DType type,
                                         Bytes attention);

/// Is the block of this number, from 0, a checkpoint where every `every`-th one is? 0: none is.
/// Source: torchtitan's selective activation checkpointing by layers, which counts from 1.
constexpr bool is_checkpoint(int block, int every) {
  return every > 0 && (block + 1) % every == 0;
}

}  // namespace ddpsim
