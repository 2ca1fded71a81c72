#include "model/parallel/bucketing.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <stdexcept>

// One walk over the gradients, with one open bucket per dtype. Under the torch rule, limits of 1
// and 2 MiB, and gradients of 1 (fp32), 1 (bf16), 0.5 (fp32), 8 (sparse) and 1 MiB (bf16):
//
//     gradient     open: fp32   bf16       emitted, and the limit reached
//     0  fp32 1.0        -      -          [0]  1 MiB
//     1  bf16 1.0        -      -          [1]  1 MiB: every dtype starts at the first limit
//     2  fp32 0.5        [2]    -
//     3  sparse          [2]    -          [3]  0: ahead of the bucket that was open before it
//     4  bf16 1.0        [2]    [4]
//     end                -      -          [4]  2 MiB, [2]  2 MiB: the leftovers

namespace ddpsim {
namespace {

struct OpenBucket {
  DType type;
  std::vector<int> parameters;
  Bytes size;
  std::size_t limit = 0;  // index into the limits
};

void check(std::span<const Bytes> limits) {
  if (limits.empty()) throw std::invalid_argument("buckets need at least one size limit");
  for (const Bytes limit : limits)
    if (limit < Bytes{1})
      throw std::invalid_argument("a bucket's size limit must be at least one byte, got " +
                                  std::to_string(limit.count));
}

int smallest_index(const BucketAssignment& bucket) {
  return *std::ranges::min_element(bucket.parameters);
}

}  // namespace

std::vector<BucketAssignment> assign_buckets(std::span<const GradientInfo> gradients,
                                             std::span<const int> order,
                                             std::span<const Bytes> limits, BucketRule rule,
                                             bool sort_by_smallest_index) {
  check(limits);
  std::vector<BucketAssignment> buckets;
  std::vector<OpenBucket> open;  // in the order their types first appeared

  const auto open_bucket = [&](DType type) -> OpenBucket& {
    const auto found = std::ranges::find(open, type, &OpenBucket::type);
    if (found != open.end()) return *found;
    open.push_back({.type = type, .parameters = {}, .size = {}});
    open.back().parameters.reserve(order.size());
    return open.back();
  };
  const auto emit = [&](OpenBucket& bucket) {
    // Copied, not moved: the exact size is allocated once, and the next bucket reuses the room.
    buckets.push_back({bucket.parameters, limits[bucket.limit]});
    bucket.parameters.clear();
    bucket.size = {};
    bucket.limit = std::min(bucket.limit + 1, limits.size() - 1);
  };

  for (const int index : order) {
    assert(index >= 0 && static_cast<std::size_t>(index) < gradients.size());
    const GradientInfo& gradient = gradients[static_cast<std::size_t>(index)];
    if (gradient.ignored) continue;
    if (gradient.sparse) {
      buckets.push_back({{index}, Bytes{0}});
      continue;
    }
    OpenBucket& bucket = open_bucket(stored_type(gradient.dtype));
    const bool overflows = bucket.size + gradient.size > limits[bucket.limit];
    if (rule == BucketRule::before_overflow && overflows && !bucket.parameters.empty())
      emit(bucket);
    bucket.parameters.push_back(index);
    bucket.size += gradient.size;
    if (rule == BucketRule::torch && bucket.size >= limits[bucket.limit]) emit(bucket);
  }
  for (auto bucket = open.rbegin(); bucket != open.rend(); ++bucket)
    if (!bucket->parameters.empty()) emit(*bucket);

  if (sort_by_smallest_index) std::ranges::sort(buckets, {}, smallest_index);
  return buckets;
}

std::vector<BucketAssignment> initial_buckets(std::span<const GradientInfo> gradients,
                                              const DdpBucketing& ddp) {
  check(ddp.limits);
  constexpr Bytes unbounded{std::numeric_limits<std::int64_t>::max()};
  const std::span<const Bytes> limits =
      never_rebuilt(ddp.find_unused_parameters, ddp.static_graph) || ddp.limits_at_construction
          ? std::span{ddp.limits}
          : std::span{&unbounded, 1};
  std::vector<int> registration(gradients.size());
  std::iota(registration.begin(), registration.end(), 0);
  std::vector<BucketAssignment> buckets =
      assign_buckets(gradients, registration, limits, ddp.rule, true);
  std::ranges::reverse(buckets);  // the list only: inside a bucket indices still ascend
  return buckets;
}

std::vector<BucketAssignment> steady_buckets(std::span<const GradientInfo> gradients,
                                             std::span<const int> arrival,
                                             const DdpBucketing& ddp) {
  if (never_rebuilt(ddp.find_unused_parameters, ddp.static_graph))
    return initial_buckets(gradients, ddp);
  assert(arrival.size() == gradients.size());
  if (!ddp.first_limit_last) return assign_buckets(gradients, arrival, ddp.limits, ddp.rule);
  const std::vector<int> backwards(arrival.rbegin(), arrival.rend());
  std::vector<BucketAssignment> buckets =
      assign_buckets(gradients, backwards, ddp.limits, ddp.rule);
  std::ranges::reverse(buckets);
  return buckets;
}

}  // namespace ddpsim
