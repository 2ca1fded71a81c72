#include "model/workload/attention.hpp"

#include <algorithm>
#include <cmath>

namespace ddpsim {
namespace {

/// Products per score: of queries and keys, and of scores and values; backward the scores once
/// more, and the gradients of values, scores, queries and keys.
std::int64_t products(const Attention& attention) {
  return attention.backward ? 5 : 2;
}

/// Elements along the inner dimension of the products, summed over the products of the pass.
std::int64_t elements_per_score(const Attention& attention) {
  const std::int64_t of_values = attention.value_size > 0 ? attention.value_size : attention.size;
  return attention.backward ? 3 * attention.size + 2 * of_values : attention.size + of_values;
}

}  // namespace

double score_count(const Attention& attention) {
  return static_cast<double>(attention.batch) * static_cast<double>(attention.heads) *
         static_cast<double>(attention.queries) * static_cast<double>(attention.keys);
}

double visible_scores(const Attention& attention) {
  if (!attention.causal) return score_count(attention);
  // Query i (from 0) sees i + 1 keys, and later queries see all keys.
  const auto keys = static_cast<double>(attention.keys);
  const auto queries = static_cast<double>(attention.queries);
  const double growing = std::min(queries, keys);
  const double of_a_head = growing * (growing + 1) / 2 + (queries - growing) * keys;
  return static_cast<double>(attention.batch) * static_cast<double>(attention.heads) * of_a_head;
}

double counted_flops(const Attention& attention) {
  return 2.0 * score_count(attention) * static_cast<double>(elements_per_score(attention));
}

double recomputed_share(const Attention& attention) {
  if (!attention.backward) return 0;
  return static_cast<double>(attention.size) / static_cast<double>(elements_per_score(attention));
}

Gemm fused_attention_gemm(const Attention& attention) {
  const std::int64_t tiled = attention.backward ? attention.keys : attention.queries;
  const std::int64_t walked = attention.backward ? attention.queries : attention.keys;
  const std::int64_t elements = elements_per_score(attention), count = products(attention);
  const std::int64_t size = (elements + count - 1) / count;
  const double seen = visible_scores(attention) / score_count(attention);
  const auto length = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(elements * walked) * seen / static_cast<double>(size) - 1e-6));
  return {.m = tiled,
          .n = size,
          .k = std::max<std::int64_t>(length, 1),
          .batch = attention.batch * attention.heads};
}

}  // namespace ddpsim
