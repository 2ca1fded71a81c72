#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Where PowerSGD's pieces of one bucket lie, in elements.
///
///     compressed gradients M_i [n x m], rank r       P_i [n x r], Q_i [m x r], all row-major,
///                                                    one behind the other, as low_rank_gradients
///     the others                                     in `small`, one behind the other
///
/// Batched PowerSGD has one M: the bucket, padded to a square.
struct LowRankLayout {
  struct Range {
    std::int64_t begin = 0, count = 0;
    std::int64_t end() const { return begin + count; }
  };
  /// A gradient that is compressed, with the place of its M in the data, of its P in P, its Q in Q.
  struct Compressed {
    LowRank shape;
    Range m, p, q;
  };

  std::vector<Compressed> compressed;  ///< in the order in which their P and Q lie
  std::vector<Range> uncompressed;     ///< in the data, in the order in which they lie in `small`
  std::int64_t p_size = 0, q_size = 0, small_size = 0;

  /// Where the gradient at this position of the bucket is compressed (batched: position nobody).
  /// Throws std::invalid_argument if it is not compressed.
  const Compressed& of(std::int32_t tensor) const;
};

/// The layout for a bucket of `elements`. Throws std::invalid_argument if the sizes do not agree or
/// the rank is too large for the bucket.
LowRankLayout low_rank_layout(const Bucket& bucket, std::int64_t elements);

/// Throws std::invalid_argument if a bucket that is compressed as a whole has too few elements for
/// the rank of its P and Q.
void check_rank(const Bucket& bucket, std::int64_t elements);

}  // namespace ddpsim
