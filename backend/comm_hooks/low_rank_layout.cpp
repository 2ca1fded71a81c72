#include "backend/comm_hooks/low_rank_layout.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Is the whole bucket one matrix, padded to a square?
bool is_batched(const Bucket& bucket) {
  return bucket.low_rank.size() == 1 && bucket.low_rank.front().tensor == nobody;
}

/// A place for its P and Q, behind those of the gradients before it.
void add_compressed(LowRankLayout& layout, const LowRank& shape, LowRankLayout::Range m) {
  const LowRankLayout::Range p{layout.p_size, shape.rows * shape.rank};
  const LowRankLayout::Range q{layout.q_size, shape.columns * shape.rank};
  layout.compressed.push_back({shape, m, p, q});
  layout.p_size = p.end();
  layout.q_size = q.end();
}

}  // namespace

void check_rank(const Bucket& bucket, std::int64_t elements) {
  if (!is_batched(bucket)) return;
  const LowRank& whole = bucket.low_rank.front();
  if (whole.rank > whole.rows)
    throw std::invalid_argument(
        fmt::format("batched_powersgd of rank {} needs buckets of more than {} elements",
                    whole.rank, elements));
}

const LowRankLayout::Compressed& LowRankLayout::of(std::int32_t tensor) const {
  for (const Compressed& each : compressed)
    if (each.shape.tensor == tensor) return each;
  throw std::invalid_argument(fmt::format("gradient {} of a bucket is not compressed", tensor));
}

LowRankLayout low_rank_layout(const Bucket& bucket, std::int64_t elements) {
  LowRankLayout layout;
  if (is_batched(bucket)) {
    check_rank(bucket, elements);
    const LowRank& whole = bucket.low_rank.front();
    add_compressed(layout, whole, {0, whole.rows * whole.columns});
    return layout;
  }
  std::vector<LowRankLayout::Range> places;  // of the gradients in the bucket
  std::int64_t end = 0;
  for (const auto& [rows, columns] : bucket.gradients) {
    places.push_back({end, rows * columns});
    end = places.back().end();
  }
  if (end != elements)
    throw std::invalid_argument(
        fmt::format("a bucket of {} elements has gradients of {}", elements, end));
  std::vector<bool> taken(places.size());
  for (const LowRank& shape : bucket.low_rank) {
    add_compressed(layout, shape, places[at(shape.tensor)]);
    taken[at(shape.tensor)] = true;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (taken[i]) continue;
    layout.uncompressed.push_back(places[i]);
    layout.small_size += places[i].count;
  }
  return layout;
}

}  // namespace ddpsim
