// PowerSGD's steps of GpuHookData. P, Q and what is not compressed lie in one piece each, of all
// gradients of a bucket, as they are sent.

#include <algorithm>

#include "backend/nccl/comm_hook/gpu_hook_data.hpp"

namespace ddpsim {

/// Neighbours in the bucket go in one piece.
void GpuHookData::pack(GpuBucketData& data, Stream stream) {
  const Bytes element = size_of(data.type);
  std::int64_t to = 0;
  LowRankLayout::Range neighbours;
  const auto flush = [&] {
    if (neighbours.count > 0)
      copy(stream, data.at(HookPiece::small, to), data.values + (neighbours.begin * element).count,
           neighbours.count, data.type);
    to += neighbours.count;
  };
  for (const LowRankLayout::Range& range : data.low_rank.uncompressed) {
    if (neighbours.count > 0 && neighbours.end() == range.begin) {
      neighbours.count += range.count;
      continue;
    }
    flush();
    neighbours = range;
  }
  flush();
}

/// As PyTorch does it, one by one.
void GpuHookData::unpack(GpuBucketData& data, Stream stream) {
  const GpuNumbers small = data.all_of(HookPiece::small);
  gpu_.scale(stream, small.values, small.values, small.count, data.type, mean());
  std::int64_t from = 0;
  for (const LowRankLayout::Range& range : data.low_rank.uncompressed) {
    copy(stream, data.values + (range.begin * size_of(data.type)).count,
         data.at(HookPiece::small, from), range.count, data.type);
    from += range.count;
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
  data.normals.clear();
  for (const LowRankLayout::Compressed& each : data.low_rank.compressed)
    random.randn(data.normals.emplace_back(static_cast<std::size_t>(each.q.count)));
  data.drawn = true;
}

/// After the last one, the next comes from another draw.
void GpuHookData::put_q(GpuBucketData& data, std::size_t compressed, Stream stream) {
  gpu_.write(stream, data.at(HookPiece::q, data.low_rank.compressed[compressed].q.begin),
             data.normals[compressed], data.type);
  if (compressed + 1 == data.normals.size()) data.normals.clear();
}

void GpuHookData::put_q(GpuBucketData& data, const CommStep& step, Stream stream) {
  const auto index = &data.low_rank.of(step.tensor) - data.low_rank.compressed.data();
  put_q(data, static_cast<std::size_t>(index), stream);
}

void GpuHookData::orthogonalize(GpuBucketData& data, HookPiece target, const CommStep& step,
                                Stream stream) {
  const std::int64_t rank = data.low_rank.of(step.tensor).shape.rank;
  const GpuNumbers matrix = data.part_of(target, step);
  // Batched PowerSGD passes no epsilon on.
  gpu_.orthogonalize(stream, matrix.values, matrix.count / rank, rank, data.type,
                     static_cast<float>(step.factor));
}

void GpuHookData::multiply(GpuBucketData& data, HookPiece target, const CommStep& step,
                           Stream stream) {
  const auto [tensor, rows, columns, rank] = data.low_rank.of(step.tensor).shape;
  void* m = data.part_of(HookPiece::matrix, step).values;
  void* p = data.part_of(HookPiece::p, step).values;
  void* q = data.part_of(HookPiece::q, step).values;
  GemmCall call;
  call.type = call.result_type = data.type;
  call.stream = stream;
  if (target == HookPiece::p) {
    call.layout = GpuGemmLayout::nn;
    call.gemm = {rows, rank, columns};
    call.left = m, call.right = q, call.result = p;
  } else if (target == HookPiece::q) {
    call.layout = GpuGemmLayout::tn;
    call.gemm = {columns, rank, rows};
    call.left = m, call.right = p, call.result = q;
  } else {
    call.layout = GpuGemmLayout::nt;
    call.gemm = {rows, columns, rank};
    call.left = p, call.right = q, call.result = m;
  }
  gpu_.gemm(call);
}

}  // namespace ddpsim
