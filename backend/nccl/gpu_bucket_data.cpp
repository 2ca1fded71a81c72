#include "backend/nccl/gpu_bucket_data.hpp"

namespace ddpsim {
namespace {

void plan_powersgd(const PowerSgd& state, const Bucket& bucket, GpuBucketData& data) {
  std::int64_t begin = 0;
  for (const CommBucket::Matrix& gradient : bucket.gradients) {
    data.matrices.push_back({gradient.rows, gradient.columns, begin});
    begin += gradient.rows * gradient.columns;
  }
  data.small_size = begin;
  for (const LowRank& low : low_rank_gradients(state, bucket.gradients)) {
    data.compressed.push_back(static_cast<std::size_t>(low.tensor));
    GpuMatrix& matrix = data.matrices[data.compressed.back()];
    matrix.rank = low.rank;
    matrix.p_begin = data.p_size;
    matrix.q_begin = data.q_size;
    data.p_size += low.rank * low.rows;
    data.q_size += low.rank * low.columns;
    data.small_size -= low.rows * low.columns;
  }
}

}  // namespace

GpuBucketData::GpuBucketData(const CommHook& hook, const Bucket& whole, DType stored)
    : parameters(whole.parameters),
      given(stored),
      elements(whole.size.count / size_of(stored).count) {
  switch (hook.kind) {
    case CommHookKind::powersgd:
      plan_powersgd(hook.powersgd, whole, *this);
      break;
    case CommHookKind::batched_powersgd: {
      const std::int64_t side = batched_side(elements);
      matrices.push_back({side, side, 0, hook.powersgd.rank});
      compressed = {0};
      p_size = q_size = side * hook.powersgd.rank;
      break;
    }
    case CommHookKind::quantization_pertensor:
      channel = elements;
      channels = 1;
      break;
    case CommHookKind::quantization_perchannel:
      channel = quantization_channel;
      channels = elements / quantization_channel + 1;
      break;
    default:
      break;
  }
}

}  // namespace ddpsim
