#pragma once

#include <random>
#include <utility>
#include <vector>

#include "model/parallel/comm_hook.hpp"
#include "tests/backend/hooked_ranks.hpp"

namespace ddpsim {

inline std::vector<float> random_values(std::mt19937& engine, std::int64_t count, float scale = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values)
    value = scale * (static_cast<float>(engine() >> 8) * 0x1p-23F - 1);  // [-1, 1)
  return values;
}

/// A bucket with the steps that a comm hook takes with it, on so many ranks of which a node has
/// `subgroup`.
inline Bucket hooked_bucket(const CommHook& hook, const CommBucket& seen, int ranks, int subgroup,
                            bool synchronous, int iteration) {
  Bucket bucket;
  bucket.size = Bytes{seen.elements() * 4};
  bucket.gradients = seen.gradients;
  bucket.low_rank = low_rank_matrices(hook, seen);
  bucket.steps = comm_steps(hook, seen, ranks, subgroup, synchronous, iteration);
  return bucket;
}

/// A comm hook and buckets of a job, on all ranks, in one thread.
class HookedJob {
 public:
  HookedJob(CommHook hook, std::vector<CommBucket> buckets, int ranks)
      : hook_(std::move(hook)),
        buckets_(std::move(buckets)),
        count_(ranks),
        ranks_(hook_.powersgd.seed, ranks) {}

  HookedRanks& ranks() { return ranks_; }
  int subgroup = 1;  ///< ranks of a node

  /// One iteration on one bucket, in place: `values` becomes every rank's result.
  void run(int index, int iteration, PerRank& values) {
    const CommBucket& bucket = buckets_[static_cast<std::size_t>(index)];
    ranks_.run(hooked_bucket(hook_, bucket, count_, subgroup, true, iteration), index, values);
  }

 private:
  CommHook hook_;
  std::vector<CommBucket> buckets_;
  int count_;
  HookedRanks ranks_;
};

}  // namespace ddpsim
