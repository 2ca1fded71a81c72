// The collective steps of GpuHookData, with what is copied and added around them, all on the
// communication stream.

#include <algorithm>

#include "backend/nccl/comm_hook/gpu_hook_data.hpp"

namespace ddpsim {
namespace {

/// This rank's part of scattered data, in elements.
struct Part {
  Part(const GpuBucketData& data, const GpuCollectives& collectives)
      : size((data.count + collectives.parts() - 1) / collectives.parts()),
        begin(std::min(data.count, collectives.rank() * size)),
        count(std::min(size, data.count - begin)) {}
  std::int64_t size;  ///< of any, the last ones padded
  std::int64_t begin, count;
};

}  // namespace

void GpuHookData::collect(GpuBucketData& data, const ActionMeaning& does) {
  if (does.primitive == HookPrimitive::all_gather) return gather(data, does.target);
  if (does.primitive == HookPrimitive::reduce_scatter) return scatter(data);
  const GpuNumbers target = data.all_of(does.target);
  if (does.primitive == HookPrimitive::broadcast)
    return collectives_.broadcast(target.values, target.count * size_of(data.type));
  collectives_.all_reduce(target.values, target.count, data.type);
}

void GpuHookData::gather(GpuBucketData& data, HookPiece piece) {
  if (piece == HookPiece::own_part) return gather_scattered(data);
  if (piece == HookPiece::data) return gather_and_add(data);
  const Bytes mine{piece == HookPiece::scales ? 8 * data.channels.count : data.channels.padded()};
  collectives_.all_gather(data.memory_of(piece).get(), mine);
}

void GpuHookData::scatter(GpuBucketData& data) {
  const Part part(data, collectives_);
  const std::int64_t element = size_of(data.type).count;
  const std::int64_t padding = part.size * collectives_.parts() - data.count;
  copy(Stream::communication, data.parts.get(), data.values, data.count, data.type);
  if (padding > 0)
    gpu_.clear(Stream::communication, data.parts.get() + data.count * element,
               Bytes{padding * element});
  collectives_.reduce_scatter(data.parts.get(), part.size, data.type);
  copy(Stream::communication, data.values + part.begin * element,
       data.parts.get() + part.begin * element, part.count, data.type);
}

/// Only what ranks of the job have: in loopback the data is all there.
void GpuHookData::gather_scattered(GpuBucketData& data) {
  const Part part(data, collectives_);
  const std::int64_t element = size_of(data.type).count;
  copy(Stream::communication, data.parts.get() + collectives_.rank() * part.size * element,
       data.values + part.begin * element, part.count, data.type);
  collectives_.all_gather(data.parts.get(), Bytes{part.size * element});
  copy(Stream::communication, data.values, data.parts.get(),
       std::min(data.count, collectives_.ranks() * part.size), data.type);
}

void GpuHookData::gather_and_add(GpuBucketData& data) {
  const std::int64_t size = data.count * size_of(data.type).count;
  copy(Stream::communication, data.parts.get() + collectives_.rank() * size, data.values,
       data.count, data.type);
  collectives_.all_gather(data.parts.get(), Bytes{size});
  copy(Stream::communication, data.values, data.parts.get(), data.count, data.type);
  for (std::int64_t r = 1; r < collectives_.parts(); ++r)
    gpu_.add(Stream::communication, data.values, data.parts.get() + r * size, data.count,
             data.type);
}

}  // namespace ddpsim
