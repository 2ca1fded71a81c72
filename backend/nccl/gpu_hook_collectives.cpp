// The collective steps of GpuHookData, with what is copied and added around them, all on the
// communication stream.

#include <algorithm>

#include "backend/nccl/gpu_hook_data.hpp"

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

void GpuHookData::collect(GpuBucketData& data, const CommStep& step) {
  switch (step.action) {
    case CommAction::reduce_small:
      return collectives_.all_reduce(data.small.get(), data.small_size, data.type);
    case CommAction::reduce_p:
      return collectives_.all_reduce(data.p.get(), data.p_size, data.type);
    case CommAction::reduce_q:
      return collectives_.all_reduce(data.q.get(), data.q_size, data.type);
    case CommAction::gather_scales:
      return collectives_.all_gather(data.scales.get(), Bytes{2 * 4 * data.channels});
    case CommAction::gather_codes:
      return collectives_.all_gather(data.codes.get(), Bytes{data.channel * data.channels});
    case CommAction::scatter_reduce:
      return scatter(data);
    case CommAction::gather_parts:
      return gather_scattered(data);
    case CommAction::gather_sum:
      return gather_and_add(data);
    case CommAction::broadcast:
      return collectives_.broadcast(data.values, data.count * size_of(data.type));
    default:
      return collectives_.all_reduce(data.values, data.count, data.type);
  }
}

void GpuHookData::scatter(GpuBucketData& data) {
  const Part part(data, collectives_);
  const std::int64_t element = size_of(data.type).count;
  const std::int64_t padding = part.size * collectives_.parts() - data.count;
  copy(Stream::communication, data.parts.get(), data.values, data.count, data.type);
  if (padding > 0)
    gpu_.clear(Stream::communication, data.at(data.parts, data.count), Bytes{padding * element});
  collectives_.reduce_scatter(data.parts.get(), part.size, data.type);
  copy(Stream::communication, data.values + part.begin * element, data.at(data.parts, part.begin),
       part.count, data.type);
}

/// Only what ranks of the job have: in loopback the data is all there.
void GpuHookData::gather_scattered(GpuBucketData& data) {
  const Part part(data, collectives_);
  const std::int64_t element = size_of(data.type).count;
  copy(Stream::communication, data.at(data.parts, collectives_.rank() * part.size),
       data.values + part.begin * element, part.count, data.type);
  collectives_.all_gather(data.parts.get(), Bytes{part.size * element});
  copy(Stream::communication, data.values, data.parts.get(),
       std::min(data.count, collectives_.ranks() * part.size), data.type);
}

void GpuHookData::gather_and_add(GpuBucketData& data) {
  copy(Stream::communication, data.at(data.parts, collectives_.rank() * data.count), data.values,
       data.count, data.type);
  collectives_.all_gather(data.parts.get(), data.count * size_of(data.type));
  copy(Stream::communication, data.values, data.parts.get(), data.count, data.type);
  for (std::int64_t r = 1; r < collectives_.parts(); ++r)
    gpu_.add(Stream::communication, data.values, data.at(data.parts, r * data.count), data.count,
             data.type);
}

}  // namespace ddpsim
