#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/job/placement.hpp"
#include "backend/nccl/gpu.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// What the steps of a workload work on, on one GPU, and the kernels that do it.
///
/// Gradients are a function of (rank, parameter, micro-batch). Operands are random and shared by all
/// kernels, each reading another place of a pool larger than the L2 cache, as the tensors of a real
/// step are. Each type of number has a pool.
class GpuMemory {
 public:
  /// Throws std::invalid_argument for parameters of a type that holds no gradients.
  GpuMemory(Gpu& gpu, const Workload& workload, Optimizer optimizer, int rank);

  /// Gives buckets and gradients their places for `schedule`.
  void arrange(const Schedule& schedule);

  /// Enqueues the kernels of a task that computes, on its stream. `ranks`: to average over.
  void run(const Schedule& schedule, const Task& task, int ranks);

  /// For profilers: "backward blocks.3.attn.q_proj", "copy in lm_head.weight", "all-reduce bucket 2 (25 MiB)".
  std::string range_name(const Schedule& schedule, const Task& task) const;

  std::byte* bucket(std::int32_t index) { return at_place(placement_.buckets[at(index)]); }
  /// The parameters of a bucket have one type.
  DType type_of(const Bucket& bucket) const {
    return workload_.parameters[at(bucket.parameters.front())].dtype;
  }
  /// `traffic` in as many kernels as the host enqueues for it; rows only on the compute stream.
  enum class Motion { elementwise, rows };
  void move(Stream stream, Bytes traffic, int launches, std::uint32_t seed,
            Motion motion = Motion::elementwise);
  /// The optimizer for the parameters of the task's bucket, on the task's stream.
  void update_bucket(const Schedule& schedule, const Task& task);

  void* buffers() { return network_buffers_.get(); }
  /// Blocks until the GPU is idle.
  std::vector<float> gradient(int parameter) const;

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  const Parameter& parameter(std::int32_t index) const { return workload_.parameters[at(index)]; }
  std::byte* at_place(const Place& place) const {
    return (place.in_buckets ? buckets_ : gradients_).get() + place.offset;
  }
  std::byte* written(std::int32_t parameter, int micro_batch) const;
  const std::byte* operand(DType type, Bytes size, std::uint32_t seed);
  void pass(const Task& task, const Kernel& kernel, const GradientBinding& binding);
  void divide(const Schedule& schedule, const Task& task, float mean);
  void copy_buffers(const Task& task);
  void optimize(const Task& task);
  void update(std::int32_t index, Stream stream);
  void update_all();

  Gpu& gpu_;
  const Workload& workload_;
  Optimizer optimizer_;
  std::vector<Kernel> optimizer_kernels_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::vector<GradientBinding>> bindings_;  ///< [layer][kernel of backward]
  std::shared_ptr<std::byte> parameters_, gradients_, fresh_, buckets_, momentum_, variance_;
  std::shared_ptr<std::byte> scratch_, network_buffers_;
  Bytes scratch_size_;
  struct Pool {
    std::shared_ptr<std::byte> values;
    Bytes size;
  };
  std::map<DType, Pool> pools_;
  Placement placement_;
  bool one_type_ = true;  ///< all parameters
  bool together_ = true;  ///< all gradients lie in their own store, under this schedule
  int steps_ = 0;
};

}  // namespace ddpsim
