#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/parallel/comm_hook.hpp"
#include "model/parallel/training.hpp"
#include "model/parallel/workload_gradients.hpp"
#include "model/parallel/write/step_writer.hpp"
#include "model/workload/kernel_bindings.hpp"
#include "model/workload/optimizer.hpp"

namespace ddpsim {

/// Where the passes take a parameter.
struct ParameterUse {
  std::size_t layer = 0;  ///< that completes its gradient; 0: none does
  /// Kernels of the passes, each counted in the order in which its pass runs them, that the
  /// parameter's module runs. Where these are not known they are all of the layer's.
  KernelRange forward, backward;
};

/// Every piece of work that a step of this workload can consist of whatever its buckets are, found
/// once, so that many jobs (strategies, bucket sizes) can be written from it quickly. Prices
/// are not here: see model/cost.
struct StepWorks : WorkloadGradients {
  /// Takes from the cluster only what shapes a job: ranks and nodes, whether the device is
  /// synchronous, and whether collectives run on the hosts.
  StepWorks(const Workload& workload, const Cluster& cluster, Optimizer optimizer);

  /// These, or those of Workload::cast where the training's passes go over that.
  const StepWorks& of(const Training& training) const {
    return training.casts_parameters() && cast ? *cast : *this;
  }

  struct OwnSend {
    std::size_t after = 0;  ///< the kernel of the pass
    Operation operation = Operation::all_reduce;
    Bytes size;
  };
  struct LayerWorks {
    std::vector<KnownWork> forward, backward;       ///< as in Layer
    std::vector<bool> rows_forward, rows_backward;  ///< kernels that reduce rows
    /// [backward kernel] what it writes, and the parameters that kernels multiply with.
    std::vector<GradientBinding> gradients;
    WeightBindings weights;
    /// [backward kernel] parameters whose gradient that kernel completes, in the order hooks fire
    std::vector<std::vector<std::int32_t>> completes;
    /// Its kernels, counted as in ParameterUse; of a pass without any the next one.
    KernelRange forward_kernels, backward_kernels;
    /// Collectives of the network's own in either pass, by the kernel they follow.
    std::vector<OwnSend> sends_forward, sends_backward;
  };
  struct BufferWorks {
    KnownWork flatten, restore, broadcast;  ///< into one tensor, to all ranks, and back into each
    Bytes size;
  };
  struct SparseSizes {
    Bytes indices, values;  ///< what each rank sends
  };

  /// Gradients in the order in which kernels complete them.
  std::vector<std::int32_t> in_backward() const;

  WorkTable table;
  std::vector<LayerWorks> layers;
  std::vector<ParameterUse> uses;         ///< [parameter]
  std::vector<ParameterUse> frozen_uses;  ///< [frozen parameter]
  // [parameter]
  /// Reads the gradient once and writes it once; of an unused one it only writes (zeros), and of a
  /// sparse one it divides the rows where they are.
  std::vector<KnownWork> copy_in;
  std::vector<KnownWork> copy_out, divide;  ///< by a loop in Python: flat, naive, overlap
  std::vector<KnownWork> divide_in_bucket;  ///< by DDP
  std::vector<KnownWork> copy_back;   ///< out of DDP's buckets: as copy_out, or as it was measured
  std::vector<KnownWork> accumulate;  ///< gradient += new gradient: two reads, one write
  std::vector<SparseSizes> sparse;
  std::vector<MatrixShape> matrices;  ///< as comm hooks see them
  /// The type that a parameter is kept and updated in. `gradients` tells that of its passes.
  std::vector<DType> kept_as;

  std::vector<KnownWork> optimizer;    ///< in order; a kernel per tensor, or one for all
  Optimizer updates;                   ///< whose kernels these are
  bool clips_gradients = false;        ///< `optimizer` begins with that
  std::size_t clipping = 0;            ///< by so many kernels
  std::vector<BufferWorks> buffers;    ///< as they are broadcast
  KnownWork concatenate, flat_divide;  ///< read and write all gradients in one launch
  Duration outside{};                  ///< of the passes: the host's, before the first
  std::int32_t operations = 0;         ///< of the forward pass: nodes of the autograd graph
  Bytes gradient_size;                 ///< of all parameters

  StepWriter::Device device;
  RanksPerNode ranks_per_node;

  std::shared_ptr<const StepWorks> cast;  ///< of Workload::cast

 private:
  /// What passes of one network consist of, and updates of another with the same parameters.
  StepWorks(const Workload& passes, const Workload& kept, const Cluster& cluster,
            Optimizer optimizer);
  void count_kernels();
  void find_uses(const Workload& workload);
};

/// Where the tasks of a step run on this cluster.
StepWriter::Device device_of(const Cluster& cluster);

/// The kernels that put gradients into their bucket together, by PyTorch's multi-tensor copy: up to
/// 64 at a time, 320 blocks of 65536 numbers.
Work copy_together(const StepWorks& works, const std::vector<std::int32_t>& parameters);

}  // namespace ddpsim
