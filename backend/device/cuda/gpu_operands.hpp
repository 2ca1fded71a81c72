#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "backend/device/cuda/gpu.hpp"
#include "model/program/job.hpp"

namespace ddpsim {

/// What kernels read and write on a GPU besides the buffers of a job: random values, other ones on
/// each rank, from places that depend on a seed alone, so that what they compute repeats exactly;
/// and room for results that nobody reads.
///
/// The places are spread over more memory than the L2 cache holds, as the tensors of a real step
/// are. Each type of number has a pool.
class GpuOperands {
 public:
  GpuOperands(Gpu& gpu, int rank)
      : gpu_(gpu), rank_(rank), beyond_cache_(2 * gpu.description().l2) {}

  /// Makes enough of both for any kernel of the job; what is read at a place stays as it is.
  void reserve(const program::Job& job);
  /// A piece of the pool, which is reserved for a kernel of that size.
  const std::byte* at(DType type, std::uint32_t seed) const;
  std::byte* scratch() const { return scratch_.get(); }

  /// Kernels that move bytes through memory and no more: `traffic` in as many as the host enqueues
  /// for it.
  void move(GpuStream stream, Bytes traffic, int launches, std::uint32_t seed,
            program::Motion motion = program::Motion::elements);

 private:
  struct Pool {
    std::shared_ptr<std::byte> values;
    Bytes size;
  };

  Gpu& gpu_;
  int rank_;
  Bytes beyond_cache_;
  std::map<DType, Pool> pools_;  ///< by the type that memory holds
  std::shared_ptr<std::byte> scratch_;
  Bytes scratch_size_;
};

/// The type in which memory holds numbers that are multiplied so.
constexpr DType stored_as(DType type) {
  return type == DType::tf32 ? DType::fp32 : type;
}

}  // namespace ddpsim
