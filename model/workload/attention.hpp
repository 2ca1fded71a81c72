#pragma once

#include <cstdint>

#include "model/workload/gemm.hpp"

namespace ddpsim {

/// Fused attention over one layer's heads: softmax(Q K^T / sqrt(size)) V without the scores in
/// memory, or its gradients.
struct Attention {
  std::int64_t batch = 0, heads = 0;
  std::int64_t queries = 0, keys = 0;  ///< of a sample
  std::int64_t size = 0;               ///< of a head's queries and keys
  bool causal = false;                 ///< query i sees keys 0 to i
  bool backward = false;               ///< the gradients of Q, K and V
  std::int64_t value_size = 0;         ///< of a head's values; 0: as `size`

  bool operator==(const Attention&) const = default;
};

/// Pairs of a query and a key of one head, as a full matrix of scores holds them.
double score_count(const Attention& attention);
/// How many of the scores a causal mask leaves; all if there is no mask.
double visible_scores(const Attention& attention);

/// Multiplications and additions as PyTorch's counter has them, which discounts no mask: a
/// multiplication and an addition per score and element of a head in each product. Forward there
/// are two, of queries and keys over `size` and of scores and values over `value_size`; backward
/// five, for the scores are computed anew: three over `size` (scores, gradients of queries and of
/// keys) and two over `value_size` (gradients of scores and of values). Source:
/// torch/utils/flop_counter.py (sdpa_flop_count, sdpa_backward_flop_count).
double counted_flops(const Attention& attention);

/// How much of that was computed before: backward the scores, which the forward pass does not keep;
/// 1/5 where values have the size of keys.
double recomputed_share(const Attention& attention);

/// The kernel as a matrix product of the same work, shaped as its thread blocks share it: one for
/// every tile of queries (backward: of keys) of every head, which walks along what it sees of the
/// other side.
///
///     forward   [queries x size] += [queries x 2 keys] [2 keys x size]
///     backward  [keys x size]    += [keys x 5 queries] [5 queries x size]
///
/// Where values have a size of their own, `size` here is the mean over the products, rounded up,
/// and the walk as long as makes the same work.
///
/// Blocks that a causal mask hides are skipped: the walk is as long as its mean, rounded up. This
/// is the one place where a mask is discounted. Source: Dao, FlashAttention-2, arXiv 2307.08691,
/// sections 3.1 and 3.2.
Gemm fused_attention_gemm(const Attention& attention);

}  // namespace ddpsim
