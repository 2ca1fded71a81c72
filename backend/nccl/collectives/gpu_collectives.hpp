#pragma once

#include <memory>

#include "backend/nccl/collectives/gpu_link.hpp"
#include "backend/nccl/device/gpu.hpp"

namespace ddpsim {

/// Collectives as the mode of the link makes them: NCCL's; or, in loopback, what one rank of a ring
/// moves and adds up, which leaves values as they are and gathers zeros from the ranks that are not
/// there. On the communication stream.
class GpuCollectives {
 public:
  GpuCollectives(Gpu& gpu, const GpuLink& link, int rank, int ranks)
      : gpu_(gpu), link_(link), rank_(rank), ranks_(ranks) {}

  /// The ranks of the job, which all take part.
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  /// The number of parts of a gather: one for each rank of the job, or for each rank that loopback
  /// stands for.
  int parts() const { return looped() ? link_.loopback : ranks_; }

  /// How many calls make one collective: loopback exchanges, then adds up.
  int calls() const { return looped() ? 2 : 1; }

  /// Room for what loopback moves for a collective of this payload, and for next_values of that
  /// size. Before any such collective.
  void reserve(Operation operation, Bytes payload);
  /// Values that are nobody's gradient, all zero, of a reserved size; another place each time, as
  /// gradients are, and more of them than the L2 cache holds.
  void* next_values(Bytes size);

  void all_reduce(void* values, std::int64_t count, DType type);
  void broadcast(void* bytes, Bytes size);
  /// [parts()][size]: that of rank() is in place, the others come.
  void all_gather(void* parts, Bytes size);
  /// [parts()][count]: afterwards that of rank() is the sum.
  void reduce_scatter(void* parts, std::int64_t count, DType type);

 private:
  bool looped() const { return link_.mode == GpuLink::Mode::loopback; }

  Gpu& gpu_;
  GpuLink link_;
  int rank_, ranks_;
  std::shared_ptr<std::byte> memory_;  ///< what is sent, what is received, then next_values
  std::shared_ptr<std::byte> zeros_;   ///< what is gathered from ranks that are not there
  Bytes size_, zeros_size_;
  std::int64_t next_value_ = 0;  ///< in memory_
};

}  // namespace ddpsim
