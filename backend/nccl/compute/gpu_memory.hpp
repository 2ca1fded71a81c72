#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/job/placement.hpp"
#include "backend/nccl/device/gpu.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// What the steps of a workload work on, on one GPU.
///
/// Gradients are a function of (rank, parameter, micro-batch). Operands are random and shared by
/// all kernels, each reading another place of a pool larger than the L2 cache, as the tensors of a
/// real step are. Each type of number has a pool.
class GpuMemory {
 public:
  /// Throws std::invalid_argument for parameters of a type that holds no gradients.
  GpuMemory(Gpu& gpu, const Workload& workload, Optimizer optimizer, int rank);

  /// Gives buckets and gradients their places for `schedule`.
  void arrange(const Schedule& schedule);

  const Workload& workload() const { return workload_; }
  const Parameter& parameter(std::int32_t index) const { return workload_.parameters[at(index)]; }
  /// The kernel of backward that writes each gradient: [layer][kernel].
  const GradientBinding& binding(const Task& backward) const {
    return bindings_[at(backward.layer)][at(backward.kernel)];
  }

  // Where the present schedule has its data.
  std::byte* bucket(std::int32_t index) const { return at_place(placement_.buckets[at(index)]); }
  /// The parameters of a bucket have one type.
  DType type_of(const Bucket& bucket) const {
    return workload_.parameters[at(bucket.parameters.front())].dtype;
  }
  std::byte* gradient_at(std::int32_t parameter) const {
    return at_place(placement_.gradients[at(parameter)]);
  }
  /// A parameter's part of its bucket.
  std::byte* slice_at(std::int32_t parameter) const {
    return at_place(placement_.slices[at(parameter)]);
  }
  /// Where backward writes a gradient: in later micro-batches what is then added to it.
  std::byte* written(std::int32_t parameter, int micro_batch) const;
  /// Blocks until the GPU is idle.
  std::vector<float> gradient(int parameter) const;

  // What the optimizer works on; the states are null if it has none.
  std::byte* parameter_at(std::int32_t index) const { return parameters_.get() + offset(index); }
  std::byte* momentum_at(std::int32_t index) const { return momentum_.get() + offset(index); }
  std::byte* variance_at(std::int32_t index) const {
    return variance_ ? variance_.get() + offset(index) : nullptr;
  }
  /// All parameters are of one type and all gradients lie in their own store, under this schedule:
  /// they and the optimizer's states lie side by side, from that of parameter 0 on, gaps included.
  bool together() const { return together_; }
  Bytes store_size() const { return Bytes{offsets_.back()}; }

  void* buffers() { return network_buffers_.get(); }
  /// A piece of the pool; another for another seed, so that no kernel finds what it reads in the
  /// cache.
  const std::byte* operand(DType type, Bytes size, std::uint32_t seed) const;
  /// Room for a result that nobody reads, of any kernel.
  std::byte* scratch() const { return scratch_.get(); }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  std::int64_t offset(std::int32_t parameter) const { return offsets_[at(parameter)]; }
  std::byte* at_place(const Place& place) const {
    return (place.in_buckets ? buckets_ : gradients_).get() + place.offset;
  }
  void make_stores(Optimizer optimizer);
  void make_operands(const std::vector<Kernel>& optimizer_kernels, int rank);

  Gpu& gpu_;
  const Workload& workload_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::vector<GradientBinding>> bindings_;  ///< [layer][kernel of backward]
  std::shared_ptr<std::byte> parameters_, gradients_, fresh_, buckets_, momentum_, variance_;
  std::shared_ptr<std::byte> scratch_, network_buffers_;
  struct Pool {
    std::shared_ptr<std::byte> values;
    Bytes size;
  };
  std::map<DType, Pool> pools_;
  Placement placement_;
  bool one_type_ = true;  ///< all parameters
  bool together_ = true;
};

/// An Adam of any kind keeps two states, SGD with momentum one.
constexpr bool keeps_variance(Optimizer optimizer) {
  return optimizer != Optimizer::none && optimizer != Optimizer::sgd;
}

}  // namespace ddpsim
