#include "backend/nccl/collectives/gpu_collectives.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace

// Both ends of what loopback moves take up to two payloads each. Behind them lie values for
// collectives in the background, many times over where they would fit the L2 cache.
void GpuCollectives::reserve(Operation operation, Bytes payload) {
  if (operation == Operation::all_gather) {
    const Bytes others{(parts() - 1) * payload.count};
    if (!looped() || others <= zeros_size_) return;
    zeros_.reset();
    zeros_ = gpu_.allocate(others, "the buffers of all-gathers");
    gpu_.clear(Stream::communication, zeros_.get(), others);
    zeros_size_ = others;
    return;
  }
  // Parts of a scattered payload are rounded up.
  if (operation == Operation::reduce_scatter) payload += Bytes{parts() * std::int64_t{4}};
  const std::int64_t unit = aligned(payload.count);
  const Bytes needed{4 * unit + std::max(unit, 2 * gpu_.description().l2.count)};
  if (needed <= size_) return;
  memory_.reset();
  memory_ = gpu_.allocate(needed, "the buffers of all-reduces");
  gpu_.clear(Stream::communication, memory_.get(), needed);
  size_ = needed;
}

void* GpuCollectives::next_values(Bytes size) {
  const std::int64_t unit = aligned(size.count);
  if (next_value_ < 4 * unit || next_value_ + unit > size_.count) next_value_ = 4 * unit;
  std::byte* values = memory_.get() + next_value_;
  next_value_ += unit;
  return values;
}

void GpuCollectives::all_reduce(void* values, std::int64_t count, DType type) {
  if (count == 0) return;
  if (!looped()) return gpu_.all_reduce(values, count, type);
  const std::int64_t reduced = count - count / parts();
  const std::int64_t element = size_of(type).count;
  if (reduced == 0) return;
  const std::int64_t half = 2 * aligned(count * element);
  gpu_.exchange(memory_.get(), memory_.get() + half, Bytes{2 * reduced * element});
  gpu_.add(Stream::communication, memory_.get(), values, reduced, type);
}

void GpuCollectives::broadcast(void* bytes, Bytes size) {
  if (size == Bytes{}) return;
  if (!looped()) return gpu_.broadcast(bytes, size);
  gpu_.exchange(memory_.get(), memory_.get() + 2 * aligned(size.count), size);
}

void GpuCollectives::all_gather(void* parts, Bytes size) {
  if (size == Bytes{}) return;
  if (!looped()) return gpu_.all_gather(parts, size);
  const Bytes others{(this->parts() - 1) * size.count};
  if (others > Bytes{})
    gpu_.exchange(zeros_.get(), static_cast<std::byte*>(parts) + size.count, others);
}

void GpuCollectives::reduce_scatter(void* parts, std::int64_t count, DType type) {
  if (count == 0) return;
  if (!looped()) return gpu_.reduce_scatter(parts, count, type);
  const std::int64_t others = (this->parts() - 1) * count;
  if (others == 0) return;
  const std::int64_t half = 2 * aligned(this->parts() * count * size_of(type).count);
  gpu_.exchange(memory_.get(), memory_.get() + half, others * size_of(type));
  gpu_.add(Stream::communication, memory_.get(), parts, others, type);
}

}  // namespace ddpsim
