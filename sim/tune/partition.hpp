#pragma once

#include <functional>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Gradients to be cut into contiguous buckets, where computation and communication do not slow
/// each other: gradient i is in place at ready[i], buckets are reduced one after the other, and of
/// the step there is `after[i]` left once the bucket that begins with gradient i has been reduced
/// (its copies back, those of all later ones, and the optimizer).
///
///     end_b  = max(end_{b-1}, ready of b's last gradient) + cost(bytes of b)
///     step   = max(without, end_b + after[first of b] over all b)
///
/// Source of the second line: DDP waits and copies back bucket by bucket (pytorch reducer.cpp
/// finalize_backward).
struct PartitionProblem {
  std::vector<Instant> ready;   ///< [gradient] in arrival order, never decreasing
  std::vector<Bytes> sizes;     ///< [gradient]
  std::vector<Duration> after;  ///< [gradient] never increasing
  Duration without{};           ///< the step if all-reduces took no time
  std::function<Duration(Bytes)> cost;
};

/// A way to cut the gradients into buckets: one past the last gradient of each bucket, growing; and
/// the step it leads to.
struct Partition {
  std::vector<int> ends;
  Duration step{};
};

/// The partition with the shortest step, whatever `cost` is; among equals one of the fewest buckets
/// found. By dynamic programming over the gradients: of the ways to cut the first j, only those
/// count that no other beats both in when the last all-reduce ends and in how long the buckets so
/// far make the step; a later bucket sees nothing else of them. Cost: n^2 / 2 prices, each times
/// the ways kept (a few).
Partition best_partition(const PartitionProblem& problem);

}  // namespace ddpsim
