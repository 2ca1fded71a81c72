#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "backend/comm_hooks/hook_data.hpp"
#include "backend/cpu/float16.hpp"
#include "model/ddp/comm_hook.hpp"

namespace ddpsim {

/// [rank]: a bucket's values.
using PerRank = std::vector<std::vector<float>>;

inline std::vector<float> random_values(std::mt19937& engine, std::int64_t count, float scale = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values)
    value = scale * (static_cast<float>(engine() >> 8) * 0x1p-23F - 1);  // [-1, 1)
  return values;
}

/// A comm hook on all ranks of a job, in one thread: collectives are done here, in the plainest
/// way.
class HookedJob {
 public:
  HookedJob(CommHook hook, std::vector<CommBucket> buckets, int ranks)
      : hook_(std::move(hook)), buckets_(std::move(buckets)) {
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.push_back(std::make_unique<HookData>(hook_.powersgd.seed, rank, ranks));
  }

  HookData& rank(std::size_t index) { return *ranks_[index]; }
  int subgroup = 1;  ///< ranks of a node

  /// One iteration on one bucket, in place: `values` becomes every rank's result.
  void run(int index, int iteration, PerRank& values) {
    const CommBucket& bucket = buckets_[static_cast<std::size_t>(index)];
    Bucket what;
    what.size = Bytes{bucket.elements() * 4};
    what.gradients = bucket.gradients;
    what.low_rank = low_rank_matrices(hook_, bucket);
    what.steps =
        comm_steps(hook_, bucket, static_cast<int>(ranks_.size()), subgroup, true, iteration);
    for (const CommStep& step : what.steps) {
      if (step.action == CommAction::synchronize || step.action == CommAction::update) continue;
      if (!is_collective(step.operation)) {
        for (std::size_t r = 0; r < ranks_.size(); ++r)
          ranks_[r]->run(what, index, step, values[r]);
        continue;
      }
      std::vector<HookData::Payload> payloads;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        payloads.push_back(ranks_[r]->payload(what, index, step, values[r]));
      communicate(step, payloads);
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        ranks_[r]->arrived(what, index, step, values[r]);
    }
  }

 private:
  static void sum(std::span<HookData::Payload> payloads) {
    const std::span<std::byte> first = payloads.front().mine;
    for (HookData::Payload& other : payloads.subspan(1)) {
      if (size_of(other.type) == Bytes{4}) {
        for (std::size_t i = 0; i < first.size(); i += 4) {
          float a = 0, b = 0;
          std::memcpy(&a, &first[i], 4);
          std::memcpy(&b, &other.mine[i], 4);
          a += b;
          std::memcpy(&first[i], &a, 4);
        }
      } else {
        std::vector<std::uint16_t> a(first.size() / 2), b(first.size() / 2);
        std::memcpy(a.data(), first.data(), first.size());
        std::memcpy(b.data(), other.mine.data(), first.size());
        add16(other.type, a, b);
        std::memcpy(first.data(), a.data(), first.size());
      }
    }
    for (HookData::Payload& other : payloads.subspan(1))
      std::ranges::copy(first, other.mine.begin());
  }

  /// reduce_scatter leaves every rank its part and garbage elsewhere.
  static void scatter(std::span<HookData::Payload> payloads) {
    sum(payloads);
    const auto element = static_cast<std::size_t>(size_of(payloads.front().type).count);
    const std::size_t elements = payloads.front().mine.size() / element;
    const std::size_t part = (elements + payloads.size() - 1) / payloads.size();
    for (std::size_t r = 0; r < payloads.size(); ++r)
      for (std::size_t i = 0; i < elements; ++i)
        if (i / part != r)
          std::ranges::fill(payloads[r].mine.subspan(i * element, element), std::byte{0x55});
  }

  void communicate(const CommStep& step, std::span<HookData::Payload> payloads) const {
    switch (step.operation) {
      case Operation::all_reduce: {
        const bool some = step.action == CommAction::reduce_subgroup;
        const auto group =
            some ? static_cast<std::size_t>(hook_.post_local_sgd.subgroup_of(subgroup))
                 : payloads.size();
        for (std::size_t r = 0; r < payloads.size(); r += group)
          sum(payloads.subspan(r, std::min(group, payloads.size() - r)));
        return;
      }
      case Operation::reduce_scatter:
        return scatter(payloads);
      case Operation::broadcast:
        for (HookData::Payload& other : payloads.subspan(1))
          std::ranges::copy(payloads.front().mine, other.mine.begin());
        return;
      default:  // all_gather
        for (HookData::Payload& to : payloads)
          for (std::size_t r = 0; r < payloads.size(); ++r)
            std::ranges::copy(payloads[r].mine,
                              to.all.subspan(r * to.mine.size(), to.mine.size()).begin());
    }
  }

  CommHook hook_;
  std::vector<CommBucket> buckets_;
  std::vector<std::unique_ptr<HookData>> ranks_;
};

}  // namespace ddpsim
