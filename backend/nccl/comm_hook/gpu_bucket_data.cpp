#include "backend/nccl/comm_hook/gpu_bucket_data.hpp"

#include <stdexcept>

namespace ddpsim {

GpuBucketData::GpuBucketData(const Bucket& whole, DType stored)
    : parameters(whole.parameters),
      bucket_type(stored),
      elements(whole.size.count / size_of(stored).count),
      padded(whole.low_rank.size() == 1 && whole.low_rank.front().tensor == nobody) {
  const auto has = [&](HookPrimitive primitive) {
    return std::ranges::any_of(whole.steps, [&](const CommStep& step) {
      return meaning_of(step.action).primitive == primitive;
    });
  };
  if (padded || has(HookPrimitive::unpack) || !whole.low_rank.empty() || has(HookPrimitive::pack))
    low_rank = low_rank_layout(whole, elements);
  for (const CommStep& step : whole.steps)
    if (meaning_of(step.action).primitive == HookPrimitive::observe)
      channels = quantization_channels(step.channel, elements);
}

std::int64_t GpuBucketData::count_of(HookPiece piece) const {
  switch (piece) {
    case HookPiece::p:
      return low_rank.p_size;
    case HookPiece::q:
      return low_rank.q_size;
    case HookPiece::small:
      return low_rank.small_size;
    case HookPiece::input:
    case HookPiece::error:
      return padded ? low_rank.compressed.front().m.count : elements;
    case HookPiece::none:
    case HookPiece::data:
    case HookPiece::matrix:
    case HookPiece::scales:
    case HookPiece::codes:
    case HookPiece::pairs:
    case HookPiece::own_part:
    case HookPiece::plugin_payload:
    case HookPiece::parameters:
      break;
  }
  throw std::logic_error("not a piece of PowerSGD");
}

GpuNumbers GpuBucketData::all_of(HookPiece piece) const {
  if (piece == HookPiece::data) return {values, count};
  return {at(piece, 0), count_of(piece)};
}

GpuNumbers GpuBucketData::part_of(HookPiece piece, const CommStep& step) const {
  const LowRankLayout::Compressed& gradient = low_rank.of(step.tensor);
  switch (piece) {
    case HookPiece::p:
      return {at(piece, gradient.p.begin), gradient.p.count};
    case HookPiece::q:
      return {at(piece, gradient.q.begin), gradient.q.count};
    case HookPiece::matrix:
      return {values + gradient.m.begin * size_of(type).count, gradient.m.count};
    case HookPiece::none:
    case HookPiece::data:
    case HookPiece::small:
    case HookPiece::input:
    case HookPiece::error:
    case HookPiece::scales:
    case HookPiece::codes:
    case HookPiece::pairs:
    case HookPiece::own_part:
    case HookPiece::plugin_payload:
    case HookPiece::parameters:
      break;
  }
  throw std::logic_error("not a piece with a part for each gradient");
}

}  // namespace ddpsim
