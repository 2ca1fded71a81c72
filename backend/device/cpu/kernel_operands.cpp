#include "backend/device/cpu/kernel_operands.hpp"

#include <algorithm>
#include <variant>

#include "backend/execute/start_values.hpp"

namespace ddpsim {
namespace {

constexpr std::int64_t offsets = 4096;             // kernels start reading at different places
constexpr std::int64_t longest_stream = 16 << 20;  // values; longer streams wrap around

/// How many values a kernel reads or writes at most; long streams wrap around.
std::int64_t reach(Bytes traffic, const std::optional<Gemm>& gemm) {
  std::int64_t values = std::min(longest_stream, traffic.count / 8);
  if (gemm)
    values = std::max({values, gemm->batch * gemm->m * gemm->k, gemm->batch * gemm->k * gemm->n,
                       gemm->batch * gemm->m * gemm->n});
  return values;
}

}  // namespace

void KernelOperands::reserve(const program::Job& job) {
  std::int64_t most = 1;
  for (const Work& work : job.works) most = std::max(most, reach(work.traffic, work.gemm));
  const auto slices_of = [&](const program::Actions& actions) {
    for (const program::Slice& slice : actions.slices) most = std::max(most, slice.count);
  };
  if (job.known) slices_of(*job.known);
  slices_of(job.own);
  if (static_cast<std::int64_t>(values_.size()) < most + offsets)
    values_ = execute::random_values(most + offsets, 2 + static_cast<std::uint64_t>(rank_));
  if (scratch_size() < most) scratch_.resize(static_cast<std::size_t>(most), 0);
}

const float* KernelOperands::at(std::uint32_t seed) const {
  return values_.data() + (seed * 2654435761U >> 12) % offsets;
}

}  // namespace ddpsim
