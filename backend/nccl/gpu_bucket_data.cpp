#include "backend/nccl/gpu_bucket_data.hpp"

namespace ddpsim {
namespace {

void plan_powersgd(const PowerSgd& state, const Bucket& bucket, GpuBucketData& data) {
  std::int64_t begin = 0;
  for (const CommBucket::Matrix& gradient : bucket.gradients) {
    GpuMatrix matrix{gradient.rows, gradient.columns, begin};
    const std::int64_t elements = matrix.rows * matrix.columns;
    matrix.rank = powersgd_rank(state, gradient);
    matrix.p_begin = data.p_size;
    matrix.q_begin = data.q_size;
    begin += elements;
    data.p_size += matrix.rank * matrix.rows;
    data.q_size += matrix.rank * matrix.columns;
    if (matrix.rank == 0) data.small_size += elements;
    data.matrices.push_back(matrix);
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
