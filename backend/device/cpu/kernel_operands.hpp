#pragma once

#include <cstdint>
#include <vector>

#include "model/program/job.hpp"

namespace ddpsim {

/// What kernels read and write besides the buffers of a job: random values, another row on each
/// rank, from places that depend on a seed alone, so that what they compute repeats exactly; and
/// room for results that nobody reads.
class KernelOperands {
 public:
  explicit KernelOperands(int rank) : rank_(rank) {}

  /// Makes enough of both for any kernel of the job; what was there stays as it is.
  void reserve(const program::Job& job);
  /// As many as any kernel takes.
  const float* at(std::uint32_t seed) const;
  float* scratch() { return scratch_.data(); }
  std::int64_t scratch_size() const { return static_cast<std::int64_t>(scratch_.size()); }

 private:
  int rank_;
  std::vector<float> values_, scratch_;
};

}  // namespace ddpsim
