#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"

namespace ddpsim {

/// A gradient as bucket assignment sees it.
struct GradientInfo {
  Bytes size;                 ///< of the parameter: numel * element size
  DType dtype = DType::fp32;  ///< buckets never mix types; tf32 is stored as fp32 and counts as it
  bool sparse = false;        ///< a sparse gradient is a bucket by itself
  bool unused = false;        ///< nothing reaches it: it never becomes ready
  bool ignored = false;       ///< not DDP's to reduce: in no bucket
};

/// The type a gradient is stored as, which decides whom it may share a bucket with.
constexpr DType stored_type(DType type) {
  return type == DType::tf32 ? DType::fp32 : type;
}

enum class BucketRule : std::uint8_t {
  torch,            ///< a bucket closes once its size >= the limit, after adding
  before_overflow,  ///< a bucket closes before a gradient that would take it past the limit;
                    ///< one larger than the limit has a bucket of its own
};

inline constexpr std::array all_bucket_rules{BucketRule::torch, BucketRule::before_overflow};
constexpr std::string_view name_of(BucketRule rule) {
  return rule == BucketRule::torch ? "torch" : "before_overflow";
}

/// Parameter indices, in the order they lie in the bucket, and the limit in force when it closed.
struct BucketAssignment {
  std::vector<int> parameters;
  Bytes limit;  ///< 0 for a sparse gradient's bucket
};

/// Gradients into buckets: torch.distributed._compute_bucket_assignment_by_size.
///
/// Walks `order` (indices into `gradients`, none twice); every dtype fills its own bucket and walks
/// `limits` on its own, one step per closed bucket, the last limit repeating. A sparse gradient is
/// emitted at once, alone. Leftover buckets follow, the dtype that appeared last first: torch
/// leaves that to a hash map (rule B9), and GNU's, as in Linux builds, yields its newest key first.
/// Buckets come in the order they closed, or, `sort_by_smallest_index`, by the smallest index they
/// hold (what torch does when it is given no indices). An empty `order` gives no buckets (torch
/// refuses it). The cost is linear in `order`. Throws std::invalid_argument if `limits` is empty or
/// holds a limit below one byte. Source: pytorch torch/csrc/distributed/c10d/reducer.cpp
/// compute_bucket_assignment_by_size (rules B1-B11).
std::vector<BucketAssignment> assign_buckets(std::span<const GradientInfo> gradients,
                                             std::span<const int> order,
                                             std::span<const Bytes> limits, BucketRule rule,
                                             bool sort_by_smallest_index = false);

inline constexpr Bytes default_first_bucket_cap = 1 * MiB;
inline constexpr Bytes default_bucket_cap = 25 * MiB;

/// When DDP assigns: before its first iteration, or after it, from the order gradients arrived in.
struct DdpBucketing {
  std::vector<Bytes> limits{default_first_bucket_cap, default_bucket_cap};  ///< of the rebuild
  BucketRule rule = BucketRule::torch;
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool limits_at_construction = false;  ///< bucket_cap_mb_list: the first iteration has buckets too
  /// DDP_SET_LAST_BUCKET_CAP: the rebuild walks the arrival order backwards and reverses the list,
  /// so that the first limit is the last bucket's.
  bool first_limit_last = false;
};

/// Do the first iteration's buckets stay? (A dynamic graph with unused parameters.)
constexpr bool never_rebuilt(bool find_unused_parameters, bool static_graph) {
  return find_unused_parameters && !static_graph;
}

/// The buckets DDP's first iteration runs with, in launch order: one per dtype (a single unbounded
/// limit, registration order, list reversed), or, with find_unused_parameters and a dynamic graph
/// or a list of caps, by `limits`. The limits are checked either way, as by assign_buckets.
std::vector<BucketAssignment> initial_buckets(std::span<const GradientInfo> gradients,
                                              const DdpBucketing& ddp);

/// The buckets of every later iteration, in launch order: rebuilt from `arrival` (all indices, in
/// the order the gradients became ready), or still the initial ones, with find_unused_parameters
/// and a dynamic graph. With a static graph they hold from the third iteration on, else from the
/// second.
std::vector<BucketAssignment> steady_buckets(std::span<const GradientInfo> gradients,
                                             std::span<const int> arrival, const DdpBucketing& ddp);

}  // namespace ddpsim
