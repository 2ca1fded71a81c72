#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/device/cpu/kernel_operands.hpp"
#include "backend/gloo/sparse_gradients.hpp"
#include "backend/job/placement.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What a kernel's GEMM works on, found from shapes.
struct KernelBinding {
  GradientBinding gradient;      ///< of a forward kernel: none
  std::int32_t weight = nobody;  ///< a GEMM whose second operand is this parameter
};

/// What the steps of a workload work on, on one rank; fp32, on the host.
///
/// Every value is a function of (rank, parameter or kernel, micro-batch), so a step repeats its
/// gradients exactly. The schedule decides where gradients live (placement.hpp).
class Memory {
 public:
  Memory(const Workload& workload, Optimizer optimizer, int rank);

  /// Gives buckets and gradients their places for `schedule`; keeps contents that stay in place.
  void arrange(const Schedule& schedule);

  std::span<float> parameter(std::int32_t index) { return parameters_[at(index)]; }
  /// A bucket's parameters, in one piece (ZeRO's hooks alone have them so).
  std::span<float> parameters_of(std::int32_t bucket) { return bucket_parameters_[at(bucket)]; }
  /// Where the gradient of the current schedule is.
  std::span<float> gradient(std::int32_t index) { return gradients_[at(index)]; }
  std::span<const float> gradient(std::int32_t index) const { return gradients_[at(index)]; }
  /// Where the backward pass writes a gradient: to the gradient itself in the first micro-batch; in
  /// later ones to memory that is then added to it.
  std::span<float> written(std::int32_t index, int micro_batch) {
    return micro_batch == 0 ? gradients_[at(index)] : fresh_[at(index)];
  }
  /// Gradients and buckets are all zeros.
  void clear_gradients();
  /// The whole bucket.
  std::span<float> bucket(std::int32_t index) { return buckets_[at(index)]; }
  /// A parameter's part of its bucket.
  std::span<float> slice(std::int32_t parameter) { return slices_[at(parameter)]; }
  SparseGradients& sparse() { return sparse_; }
  /// Optimizer state; empty where the optimizer has none.
  std::span<float> momentum(std::int32_t index) {
    return momenta_.empty() ? std::span<float>() : momenta_[at(index)];
  }
  std::span<float> variance(std::int32_t index) {
    return variances_.empty() ? std::span<float>() : variances_[at(index)];
  }

  /// Random values to read, as many as any kernel of the workload takes; `seed` says where to
  /// begin.
  const float* operand(std::uint32_t seed) const { return operands_.at(seed); }
  /// Room for a result that nobody reads, of any kernel of the workload.
  float* scratch() { return operands_.scratch(); }
  std::int64_t scratch_size() const { return operands_.scratch_size(); }
  /// A group of the network's buffers as one tensor. Two groups that follow each other do not
  /// overlap.
  std::span<char> buffers(std::int32_t group, Bytes size) {
    const std::size_t room = buffers_.size() / 2;
    return std::span(buffers_).subspan(at(group) % 2 * room, static_cast<std::size_t>(size.count));
  }

  /// Models are averaged: a copy of all parameters, which in the end takes their place.
  void begin_average() { average_store_ = parameter_store_; }
  std::span<float> average() { return average_store_; }
  void end_average();

  /// What DDP tells other ranks, of `size`; nobody looks at its values.
  std::span<float> note(std::uint32_t task, Bytes size);

  const KernelBinding& forward_binding(std::int32_t layer, std::int32_t kernel) const {
    return forward_[at(layer)][at(kernel)];
  }
  const KernelBinding& backward_binding(std::int32_t layer, std::int32_t kernel) const {
    return backward_[at(layer)][at(kernel)];
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  void join_parameters(const Schedule& schedule);

  const Workload& workload_;
  SparseGradients sparse_;
  KernelOperands operands_;
  std::vector<float> parameter_store_, gradient_store_, fresh_store_, bucket_store_,
      momentum_store_, variance_store_, average_store_;
  std::vector<std::int64_t> offsets_;  ///< of the gradients, in bytes
  std::vector<std::span<float>> parameters_, gradients_, fresh_, slices_, momenta_,
      variances_;                                               ///< [parameter]
  std::vector<std::span<float>> buckets_, bucket_parameters_;   ///< [bucket]
  std::vector<std::vector<KernelBinding>> forward_, backward_;  ///< [layer][kernel]
  std::vector<char> buffers_;
  std::vector<float> notes_;             ///< of a schedule, one after the other
  std::vector<std::size_t> note_begin_;  ///< [task] where its note begins, if it is one
};

}  // namespace ddpsim
