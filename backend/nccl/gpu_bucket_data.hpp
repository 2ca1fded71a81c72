#pragma once

#include <memory>
#include <vector>

#include "backend/nccl/gpu.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// A gradient as PowerSGD sees it.
struct GpuMatrix {
  std::int64_t rows = 0, columns = 0;
  std::int64_t begin = 0;                 ///< in the data, elements
  std::int64_t rank = 0;                  ///< 0: it is not compressed
  std::int64_t p_begin = 0, q_begin = 0;  ///< in P and Q, elements
};

/// Of one bucket: what a comm hook keeps, and where its steps have left the data.
struct GpuBucketData {
  GpuBucketData(const CommHook& hook, const Bucket& whole, DType stored);

  /// The same bucket of the same hook as before.
  bool of(const Bucket& whole, DType stored) const {
    return parameters == whole.parameters && given == stored;
  }

  std::vector<std::int32_t> parameters;
  DType given = DType::fp32;  ///< the bucket's type
  std::int64_t elements = 0;  ///< of the bucket

  std::vector<GpuMatrix> matrices;  ///< PowerSGD: [gradient]; batched: one, of the padded bucket
  std::vector<std::size_t> compressed;                  ///< of them, in PyTorch's order
  std::int64_t p_size = 0, q_size = 0, small_size = 0;  ///< elements
  std::vector<std::vector<float>> normals;              ///< [gradient] drawn for Q, not yet in it
  bool drawn = false;                                   ///< Q has begun

  std::int64_t channel = 0, channels = 0;  ///< quantisation

  using Memory = std::shared_ptr<std::byte>;
  Memory copy, square;               ///< the data in another type; padded
  Memory error, input, small, p, q;  ///< PowerSGD
  Memory scales, codes;              ///< [part][...]
  Memory parts;                      ///< of gathers and scatters
  Bytes parts_room;
  DType error_type = DType::fp32;
  std::int64_t error_size = 0;  ///< elements

  // Where the data is, from step to step.
  std::byte* bucket = nullptr;
  std::byte* values = nullptr;
  DType type = DType::fp32;
  std::int64_t count = 0;

  static std::size_t gradient_of(const CommStep& step) {
    return step.tensor == nobody ? 0 : static_cast<std::size_t>(step.tensor);
  }
  const GpuMatrix& matrix_of(const CommStep& step) const { return matrices[gradient_of(step)]; }
  std::byte* at(const Memory& memory, std::int64_t element) const {
    return memory.get() + element * size_of(type).count;
  }
  /// The first `count` of the data, padded or not, lie here in the end.
  std::byte* home() const { return type == given ? bucket : copy.get(); }
};

}  // namespace ddpsim
