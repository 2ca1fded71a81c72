#pragma once

#include <array>
#include <memory>
#include <vector>

#include "backend/comm_hooks/action_table.hpp"
#include "backend/comm_hooks/low_rank_layout.hpp"
#include "backend/comm_hooks/quantization.hpp"
#include "backend/nccl/device/gpu.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Consecutive numbers of the type of a bucket's data.
struct GpuNumbers {
  std::byte* values = nullptr;
  std::int64_t count = 0;
};

/// What a comm hook keeps for one bucket, and where its steps have left the data.
struct GpuBucketData {
  GpuBucketData(const Bucket& whole, DType stored);

  /// Whether this is the data of that bucket.
  bool of(const Bucket& whole, DType stored) const {
    return parameters == whole.parameters && bucket_type == stored;
  }

  using Memory = std::shared_ptr<std::byte>;
  /// The memory of a piece other than the data; null until there is room for it.
  Memory& memory_of(HookPiece piece) { return pieces[static_cast<std::size_t>(piece)]; }
  std::byte* at(HookPiece piece, std::int64_t element) const {
    return pieces[static_cast<std::size_t>(piece)].get() + element * size_of(type).count;
  }
  /// How many numbers such a piece has, of which all are of the data's type.
  std::int64_t count_of(HookPiece piece) const;
  /// All of a piece; and the part of P, Q or the data that is for the step's gradient.
  GpuNumbers all_of(HookPiece piece) const;
  GpuNumbers part_of(HookPiece piece, const CommStep& step) const;

  /// Where the data end up: the bucket, or its copy in another type. Padded or not, the bucket's
  /// elements lie at the beginning.
  std::byte* home() const { return type == bucket_type ? bucket : copy.get(); }

  std::vector<std::int32_t> parameters;
  DType bucket_type = DType::fp32;  ///< the bucket's type
  std::int64_t elements = 0;        ///< of the bucket
  bool padded = false;              ///< the hook works on a square
  LowRankLayout low_rank;           ///< PowerSGD
  QuantizationChannels channels;

  std::array<Memory, static_cast<std::size_t>(HookPiece::parameters)> pieces;
  Memory copy, square;  ///< the data in another type; padded
  Memory parts;         ///< of gathers and scatters
  Bytes parts_room;
  DType error_type = DType::fp32;
  std::vector<std::vector<float>> normals;  ///< [compressed gradient] drawn for Q, not yet in it
  bool drawn = false;                       ///< Q has begun

  // Where the data are, from step to step.
  std::byte* bucket = nullptr;
  std::byte* values = nullptr;
  DType type = DType::fp32;
  std::int64_t count = 0;
};

}  // namespace ddpsim
