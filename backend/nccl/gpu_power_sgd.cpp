// PowerSGD's steps of GpuHookData. P, Q and what is not compressed lie in one piece each, of all
// gradients of a bucket, as they are sent.

#include <algorithm>

#include "backend/nccl/gpu_hook_data.hpp"

namespace ddpsim {

/// Neighbours go in one piece.
void GpuHookData::pack(GpuBucketData& data, Stream stream) {
  std::int64_t to = 0, from = 0, count = 0;
  const auto flush = [&] {
    if (count > 0)
      copy(stream, data.at(data.small, to), data.values + from * size_of(data.type).count, count,
           data.type);
    to += count;
    count = 0;
  };
  for (const GpuMatrix& matrix : data.matrices) {
    if (matrix.rank > 0) {
      flush();
      continue;
    }
    if (count == 0) from = matrix.begin;
    count += matrix.rows * matrix.columns;
  }
  flush();
}

/// As PyTorch does it, one by one.
void GpuHookData::unpack(GpuBucketData& data, Stream stream) {
  gpu_.scale(stream, data.small.get(), data.small.get(), data.small_size, data.type, mean());
  std::int64_t from = 0;
  for (const GpuMatrix& matrix : data.matrices) {
    if (matrix.rank > 0) continue;
    const std::int64_t count = matrix.rows * matrix.columns;
    copy(stream, data.values + matrix.begin * size_of(data.type).count, data.at(data.small, from),
         count, data.type);
    from += count;
  }
}

/// A seed for each bucket, as in PyTorch also where nothing is compressed.
void GpuHookData::draw(std::size_t bucket) {
  const auto next_seed = [&] {
    next_seed_ = (next_seed_ + 1) % buckets_.size();
    return seeds_->next();
  };
  while (next_seed_ != bucket) next_seed();
  TorchRandom random(next_seed());
  GpuBucketData& data = buckets_[bucket];
  data.normals.resize(data.matrices.size());
  for (const std::size_t g : data.compressed) {
    const GpuMatrix& matrix = data.matrices[g];
    data.normals[g].resize(static_cast<std::size_t>(matrix.columns * matrix.rank));
    random.randn(data.normals[g]);
  }
  data.drawn = true;
}

/// After the last one, the next comes from another draw.
void GpuHookData::put_q(GpuBucketData& data, std::size_t gradient, Stream stream) {
  gpu_.write(stream, data.at(data.q, data.matrices[gradient].q_begin), data.normals[gradient],
             data.type);
  if (gradient == data.compressed.back()) data.normals.clear();
}

void GpuHookData::multiply(GpuBucketData& data, const CommStep& step, Stream stream) {
  const GpuMatrix& matrix = data.matrix_of(step);
  void* m = data.values + matrix.begin * size_of(data.type).count;
  void* p = data.at(data.p, matrix.p_begin);
  void* q = data.at(data.q, matrix.q_begin);
  GemmCall call;
  call.gemm = *step.kernel.gemm;
  call.type = call.result_type = data.type;
  call.stream = stream;
  if (step.action == CommAction::project) {
    call.layout = GpuGemmLayout::nn;
    call.left = m, call.right = q, call.result = p;
  } else if (step.action == CommAction::back_project) {
    call.layout = GpuGemmLayout::tn;
    call.left = m, call.right = p, call.result = q;
  } else {
    call.layout = GpuGemmLayout::nt;
    call.left = p, call.right = q, call.result = m;
  }
  gpu_.gemm(call);
}

}  // namespace ddpsim
