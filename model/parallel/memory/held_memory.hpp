#pragma once

#include "model/parallel/training.hpp"
#include "model/program/job.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim::program {

/// The job of a step with all the memory that it takes of a device, and when: for
/// memory_along, and for nobody who runs it. The tasks are the same.
///
/// - What a job does not name, for no task works on it: activations, from a module's forward pass
///   to its backward pass; what a module's passes take for themselves meanwhile; what an optimizer
///   takes beside its state while it works; a gradient that is made before it is added to an
///   earlier one; the state of optimizers that no backend computes; frozen parameters, the batch,
///   workspaces, and buffers of modules that nobody sends.
/// - Memory of the step that is there only while it is used is held from the first task that uses
///   it to the last: gradients, which stay until the program ends; buckets, but for those of
///   DistributedDataParallel and of a wrapper that keeps them; a comm hook's tensors; what is
///   announced. A gradient that does not stay is there until its module's backward pass ends.
/// - State is held by the ranks that update with it, of parameters that have gradients.
///
/// Source: PyTorch's autograd and optimizers op by op (model/workload); distributed.py and
/// reducer.cpp for buckets and gradients; zero_redundancy_optimizer.py for whose the state is. Held
/// against what the allocator of an H200 counted: tests/experiments/peak_memory.py.
Job with_memory(Job job, const Workload& workload, Optimizer optimizer, const Training& training);

}  // namespace ddpsim::program
