#pragma once

#include <random>
#include <utility>
#include <vector>

#include "tests/backend/hooked_ranks.hpp"

namespace ddpsim {

inline std::vector<float> random_values(std::mt19937& engine, std::int64_t count, float scale = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values)
    value = scale * (static_cast<float>(engine() >> 8) * 0x1p-23F - 1);  // [-1, 1)
  return values;
}

/// A comm hook and buckets of a job, on all ranks, in one thread.
class HookedJob {
 public:
  HookedJob(CommHook hook, std::vector<CommBucket> buckets, int ranks)
      : hook_(std::move(hook)), buckets_(std::move(buckets)), ranks_(hook_.powersgd.seed, ranks) {}

  HookedRanks& ranks() { return ranks_; }
  int subgroup = 1;  ///< ranks of a node

  /// One iteration on one bucket, in place: `values` becomes every rank's result.
  void run(int index, int iteration, PerRank& values) {
    ranks_.run(hook_, buckets_[at(index)],
               {.ranks_per_node = subgroup, .synchronous = true, .iteration = iteration}, index,
               values);
  }

 private:
  CommHook hook_;
  std::vector<CommBucket> buckets_;
  HookedRanks ranks_;
};

}  // namespace ddpsim
