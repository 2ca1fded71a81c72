#include "backend/device/cuda/gpu_operands.hpp"

#include <algorithm>
#include <variant>

namespace ddpsim {
namespace {

constexpr std::int64_t alignment = 256;    // bytes; what cudaMalloc gives, and GEMMs like
constexpr Bytes shortest_stream{8 << 10};  // one row
constexpr Bytes longest_stream{256 << 20};

/// What a kernel reads from the pool, or writes to scratch memory, at most.
Bytes reach_of(const Work& work) {
  if (!work.gemm) return std::clamp(work.traffic, shortest_stream, longest_stream);
  const Gemm& g = *work.gemm;
  return std::max({g.m * g.k, g.k * g.n, g.m * g.n}) * g.batch * Bytes{4};
}

}  // namespace

void GpuOperands::reserve(const program::Job& job) {
  std::map<DType, Bytes> largest{{DType::fp32, shortest_stream}};
  Bytes result = shortest_stream;
  for (const Work& work : job.works) {
    Bytes& most = largest[work.gemm ? stored_as(work.type) : DType::fp32];
    most = std::max(most, reach_of(work));
    result = std::max(result, reach_of(work));
  }
  const auto look_at = [&](const program::Actions& actions) {
    for (const program::Deed& deed : actions.deeds)
      if (const auto* compute = std::get_if<program::Compute>(&deed.action))
        for (const program::Slice& each : actions.of(compute->fills)) {
          if (each.empty()) continue;
          const DType type = job.buffers[each.buffer].type;
          largest[type] = std::max(largest[type], each.count * size_of(type));
        }
  };
  if (job.known) look_at(*job.known);
  look_at(job.own);
  for (const auto& [type, size] : largest) {
    Pool& pool = pools_[type];
    const Bytes wanted = size + beyond_cache_ + Bytes{alignment};
    if (wanted <= pool.size) continue;
    pool.values.reset();
    pool.values = gpu_.allocate(wanted, "operands");
    pool.size = wanted;
    gpu_.fill(pool.values.get(), wanted.count / size_of(type).count, type,
              2 + static_cast<std::uint64_t>(rank_));
  }
  const Bytes wanted = std::max(result, beyond_cache_) + Bytes{alignment};
  if (wanted <= scratch_size_) return;
  scratch_.reset();
  scratch_ = gpu_.allocate(wanted, "activations");
  scratch_size_ = wanted;
}

const std::byte* GpuOperands::at(DType type, std::uint32_t seed) const {
  const auto places =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, beyond_cache_.count / alignment));
  return pools_.at(type).values.get() + (seed * 2654435761U >> 4) % places * alignment;
}

void GpuOperands::move(GpuStream stream, Bytes traffic, int launches, std::uint32_t seed,
                       program::Motion motion) {
  const Bytes each{traffic.count / std::max(1, launches)};
  for (int i = 0; i < launches; ++i) {
    const std::byte* from = at(DType::fp32, seed + static_cast<std::uint32_t>(i));
    switch (motion) {
      case program::Motion::rows:
        gpu_.normalise(stream, from, scratch(), each, longest_stream);
        break;
      case program::Motion::elements:
        gpu_.move(stream, from, scratch(), each, longest_stream);
        break;
    }
  }
}

}  // namespace ddpsim
