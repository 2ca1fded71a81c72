#pragma once

#include <random>
#include <utility>
#include <vector>

#include "model/ddp/comm_hook.hpp"
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
      : hook_(std::move(hook)),
        buckets_(std::move(buckets)),
        count_(ranks),
        ranks_(hook_.powersgd.seed, ranks) {}

  HookedRanks& ranks() { return ranks_; }
  int subgroup = 1;  ///< ranks of a node

  /// One iteration on one bucket, in place: `values` becomes every rank's result.
  void run(int index, int iteration, PerRank& values) {
    const CommBucket& bucket = buckets_[static_cast<std::size_t>(index)];
    Bucket what;
    what.size = Bytes{bucket.elements() * 4};
    what.gradients = bucket.gradients;
    what.low_rank = low_rank_matrices(hook_, bucket);
    what.steps = comm_steps(hook_, bucket, count_, subgroup, true, iteration);
    ranks_.run(what, index, values);
  }

 private:
  CommHook hook_;
  std::vector<CommBucket> buckets_;
  int count_;
  HookedRanks ranks_;
};

}  // namespace ddpsim
