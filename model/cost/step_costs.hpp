#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/cost/collective.hpp"
#include "model/cost/interference.hpp"
#include "model/cost/kernel_cost.hpp"
#include "model/ddp/bucketing.hpp"
#include "model/ddp/comm_hook.hpp"
#include "model/ddp/user_hook.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

class Prices;

/// The mean of the largest of so many draws from the standard normal distribution.
double expected_largest(int draws);

/// Everything a step of this workload can cost on this cluster, priced once, so that many schedules
/// (strategies, bucket sizes) can be built from it quickly.
///
/// Kernels and copies cost what the cluster's calibration says (calibrated_times.hpp), and what it
/// knows nothing of, or where there is none, what the law of kernel_cost.hpp says. On a synchronous
/// device the measured times hold the host's part as well: there is none besides.
struct StepCosts {
  struct LayerCosts {
    std::vector<KernelCost> forward, backward;  ///< as in Layer
  };
  std::vector<LayerCosts> layers;
  /// [parameter] read it once, write it once; of an unused one, copy_in only writes (zeros), and of a
  /// sparse one it divides the rows where they are.
  std::vector<KernelCost> copy_in, copy_out, divide;
  /// [parameter] gradient += new gradient: two reads, one write.
  std::vector<KernelCost> accumulates;
  std::vector<KernelCost> optimizer;  ///< in order; a kernel per tensor, or one for all
  struct BufferCosts {
    KernelCost flatten, restore;  ///< into one tensor, and back into each
    Duration broadcast{};
    Bytes size;
  };
  std::vector<BufferCosts> buffers;     ///< as they are broadcast
  KernelCost concatenate, flat_divide;  ///< read and write all gradients in one launch
  std::vector<GradientInfo> gradients;  ///< [parameter]
  std::vector<int> arrival;             ///< parameter indices in the order their hooks fire
  struct Sparse {
    Bytes indices, values;
  };
  std::vector<Sparse> sparse;  ///< [parameter] what each rank sends of a sparse gradient
  /// [layer][backward kernel] parameters whose gradient that kernel completes, in the order hooks
  /// fire
  std::vector<std::vector<std::vector<std::int32_t>>> hooks_of;
  Launch launch;
  Duration unused_search{};  ///< host time of the graph walk of find_unused_parameters
  CollectiveLaw collective;
  InterferenceLaw interference;
  bool synchronous = false;         ///< kernels run on the host thread
  double backward_beside_hook = 1;  ///< as in Calibration
  double slowest_rank = 1;          ///< its computation takes so much longer than a typical one's
  int ranks = 1;
  int ranks_per_node = 1;
  int collectives_at_once = 1;               ///< of one communicator
  std::optional<Bandwidth> through_host;     ///< as in Cluster
  std::vector<CommBucket::Matrix> matrices;  ///< [parameter] as comm hooks see it

  StepCosts(const Workload& workload, const Cluster& cluster, Optimizer optimizer);

  /// A kernel of a comm hook, where it was called or aside.
  KernelCost comm_kernel(Operation operation, const Kernel& kernel, bool aside = false) const;
  /// Gradients into their bucket by PyTorch's multi-tensor copy: up to 64 at a time, 320 blocks of 65536
  /// numbers.
  KernelCost copy_together(const std::vector<std::int32_t>& parameters) const;
  KernelCost divide_bucket(Bytes size) const;
  /// Collectives among some ranks of one node; all of a cluster's where it has one.
  CollectiveCost in_subgroup(Collective kind, Bytes payload, int subgroup) const;
  /// Of the user's hook on gradients of `size`, its firing on the host included.
  KernelCost hook_kernel(const UserHook& hook, Bytes size) const;
  /// Of the optimizer, for these parameters: their share of all elements.
  KernelCost optimizer_share(const std::vector<std::int32_t>& parameters) const;

  /// By copy_factor; where launches are free, so is this one.
  KernelCost adjusted(KernelCost cost) const;

  std::shared_ptr<const Prices> prices;  ///< what other kernels cost
  double copy_factor = 1;                ///< on device times of copies, and of comm hooks' kernels
};

/// How much longer than the laws say the passes of a real step take.
struct PassFactors {
  double forward = 1, backward = 1, optimizer = 1;
};

/// Every device time of a pass times its factor; the host times too, where the host bounds the pass
/// or the factor is below one.
void scale(StepCosts& costs, const PassFactors& factors);

/// Device times of everything else that computes times `factor`: copies, divisions, accumulation.
void scale_copies(StepCosts& costs, double factor);

}  // namespace ddpsim
