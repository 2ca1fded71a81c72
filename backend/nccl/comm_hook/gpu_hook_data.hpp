#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/comm_hooks/torch_random.hpp"
#include "backend/nccl/collectives/gpu_collectives.hpp"
#include "backend/nccl/comm_hook/gpu_bucket_data.hpp"
#include "backend/nccl/compute/gpu_memory.hpp"
#include "backend/nccl/compute/gpu_optimizer.hpp"
#include "backend/nccl/compute/gpu_traffic.hpp"

namespace ddpsim {

/// What a comm hook keeps and does on one GPU: every CommStep as calls on its task's stream, on the
/// buckets of `memory` (action_table.hpp says what each action does). PowerSGD's error and its Q
/// pass from step to step as long as hook and buckets stay as they are.
class GpuHookData {
 public:
  GpuHookData(Gpu& gpu, const GpuMemory& memory, GpuTraffic& traffic, GpuOptimizer& optimizer,
              GpuCollectives& collectives)
      : gpu_(gpu),
        memory_(memory),
        traffic_(traffic),
        optimizer_(optimizer),
        collectives_(collectives) {}

  /// Throws std::invalid_argument, in one line, for a comm hook that GPUs do not run.
  static void check(const Schedule& schedule);

  /// Room for all that the schedule's comm hook does; behind the memory's `arrange`.
  void arrange(const Schedule& schedule);

  /// Enqueues a task of the comm hook, on its stream. Not those of the host.
  void run(const Schedule& schedule, const Task& task);

  /// Drops what was kept: after a step without communication it is nobody's.
  void forget() { buckets_.clear(); }

  /// PowerSGD's error of a bucket as of its last step; batched: s x s, with the padding. Empty:
  /// none is kept. Blocks until the GPU is idle.
  std::vector<float> error(int bucket) const;

 private:
  bool fits(const Schedule& schedule) const;
  void begin_q(std::size_t bucket, const std::vector<CommStep>& steps);
  void make_room(GpuBucketData& data, const CommStep& step);
  void make_room(GpuBucketData& data, HookPiece piece, DType type);
  void make_room_for_parts(GpuBucketData& data, const ActionMeaning& does, DType type);
  void scale(const GpuBucketData& data, HookPiece piece, float factor, Stream stream);
  void draw(std::size_t bucket);
  void put_q(GpuBucketData& data, std::size_t compressed, Stream stream);
  void put_q(GpuBucketData& data, const CommStep& step, Stream stream);
  void cast(GpuBucketData& data, DType to, Stream stream);
  void pad(GpuBucketData& data, Stream stream);
  void unpad(GpuBucketData& data, Stream stream);
  void pack(GpuBucketData& data, Stream stream);
  void unpack(GpuBucketData& data, Stream stream);
  void orthogonalize(GpuBucketData& data, HookPiece target, const CommStep& step, Stream stream);
  void multiply(GpuBucketData& data, HookPiece target, const CommStep& step, Stream stream);
  void collect(GpuBucketData& data, const ActionMeaning& does);
  void gather(GpuBucketData& data, HookPiece piece);
  void scatter(GpuBucketData& data);
  void gather_scattered(GpuBucketData& data);
  void gather_and_add(GpuBucketData& data);
  void copy(Stream stream, void* to, const void* from, std::int64_t count, DType type);
  float mean() const { return 1.0F / static_cast<float>(collectives_.ranks()); }
  float factor_of(const CommStep& step) const;

  Gpu& gpu_;
  const GpuMemory& memory_;
  GpuTraffic& traffic_;
  GpuOptimizer& optimizer_;
  GpuCollectives& collectives_;
  std::string hook_state_;  ///< Schedule::hook_state
  std::vector<GpuBucketData> buckets_;
  std::optional<TorchSeeds> seeds_;
  std::size_t next_seed_ = 0;  ///< the bucket it is for
};

}  // namespace ddpsim
