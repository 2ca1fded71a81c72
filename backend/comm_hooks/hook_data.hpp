#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/comm_hooks/action_table.hpp"
#include "backend/comm_hooks/torch_random.hpp"
#include "backend/comm_hooks/values.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

struct BucketData;
class PowerSgdBucket;
class QuantizedBucket;

/// What a comm hook keeps and does on one rank, on the host: CommStep by CommStep, as PyTorch's
/// hooks do it (action_table.hpp says what each action does). Buckets are fp32. It lives as long as
/// the training does: PowerSGD's error and its Q pass from step to step. Where a bucket changes
/// shape (DDP's rebuild), what was kept of it goes.
///
/// The steps of a bucket are made in order, by one thread at a time; several threads may be at
/// different buckets. PowerSGD draws its random numbers in the order in which buckets come.
///
///     kernel:      run
///     collective:  payload, the communication itself, arrived
class HookData {
 public:
  /// `seed`: of the random numbers, the same on all ranks (Schedule::hook_seed).
  HookData(std::uint32_t seed, int rank, int ranks);
  ~HookData();
  HookData(const HookData&) = delete;
  HookData& operator=(const HookData&) = delete;

  /// A kernel step (not a collective, not `update`, not `synchronize`) on this bucket's data.
  /// `index`: the bucket's; `bucket`: its values. Throws std::invalid_argument where the sizes do
  /// not agree, or the plugin is missing.
  void run(const Bucket& what, int index, const CommStep& step, std::span<float> bucket);

  /// What a collective step hands over. Valid until the next call for this bucket.
  struct Payload {
    /// all_reduce, broadcast: in place. reduce_scatter: all of it, in place; afterwards only this
    /// rank's part counts: parts of ceil(elements / ranks), the last ones shorter or empty.
    /// all_gather: what this rank sends, step.payload bytes.
    std::span<std::byte> mine;
    std::span<std::byte> all;  ///< all_gather: everyone's, by rank, ranks x mine.size(); else empty
    DType type = DType::fp32;  ///< element type of an all_reduce or reduce_scatter
  };
  Payload payload(const Bucket& what, int index, const CommStep& step, std::span<float> bucket);

  /// After every collective step: takes up what `all` now holds (gather_parts, gather_sum).
  void arrived(const Bucket& what, int index, const CommStep& step, std::span<float> bucket);

  /// 16-bit values that became infinite or NaN since the last call though what this rank made them
  /// from was finite: when they were rounded, or when they were summed over ranks. Forgets them.
  std::int64_t overflows();

  /// PowerSGD's error of a bucket, as of its last step; empty: none yet. Batched: s x s, with the
  /// padding. Not while a thread is at this bucket.
  std::vector<float> error(int index) const;

  /// The user's own code around its all-reduce. Both are called with the bucket and the payload,
  /// which has plugin_reduce's size.
  struct Plugin {
    std::function<void(const float* bucket, std::int64_t count, std::span<std::byte> payload)>
        before;  ///< payload = f(bucket)
    std::function<void(float* bucket, std::int64_t count, std::span<const std::byte> payload)>
        after;  ///< bucket = f(payload)
  };
  void set_plugin(Plugin plugin) { plugin_ = std::move(plugin); }

 private:
  BucketData& data_of(const Bucket& what, int index, std::size_t elements);
  PowerSgdBucket& power_sgd_of(BucketData& data, const Bucket& what, std::size_t elements);
  static QuantizedBucket& quantized_of(BucketData& data, const CommStep& step,
                                       std::size_t elements);
  Values numbers_of(BucketData& data, HookPiece piece, const Bucket& what, const CommStep& step,
                    std::span<float> bucket);
  void run_quantization(BucketData& data, HookPrimitive primitive, const CommStep& step,
                        std::span<float> bucket) const;
  void run_plugin(BucketData& data, HookPrimitive primitive, const Bucket& what,
                  const CommStep& step, std::span<float> bucket) const;
  Payload gathered(BucketData& data, HookPiece piece, const CommStep& step,
                   std::span<float> bucket) const;
  int divisor_of(const CommStep& step) const;
  std::uint32_t next_seed();

  int rank_, ranks_;
  Plugin plugin_;
  std::atomic<std::int64_t> overflows_{0};
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<BucketData>> buckets_;
  TorchSeeds seeds_;
};

}  // namespace ddpsim
