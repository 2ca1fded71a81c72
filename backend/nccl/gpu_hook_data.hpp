#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/comm_hooks/torch_random.hpp"
#include "backend/nccl/gpu_bucket_data.hpp"
#include "backend/nccl/gpu_collectives.hpp"
#include "backend/nccl/gpu_memory.hpp"

namespace ddpsim {

/// What a comm hook keeps and does on one GPU: every CommStep as calls on its task's stream, on the
/// buckets of `memory`. PowerSGD's error and its Q pass from step to step as long as hook and buckets
/// stay as they are.
class GpuHookData {
 public:
  GpuHookData(Gpu& gpu, GpuMemory& memory, GpuCollectives& collectives)
      : gpu_(gpu), memory_(memory), collectives_(collectives) {}

  /// Throws std::invalid_argument, in one line, for a comm hook that GPUs do not run.
  static void check(const Schedule& schedule);

  /// Room for all that the schedule's comm hook does; behind the memory's `arrange`.
  void arrange(const Schedule& schedule);

  /// Enqueues a task of the comm hook, on its stream. Not those of the host.
  void run(const Schedule& schedule, const Task& task);

  /// Drops what was kept: after a step without communication it is nobody's.
  void forget() { buckets_.clear(); }

  /// PowerSGD's error of a bucket as of its last step; batched: s x s, with the padding. Empty: none
  /// is kept. Blocks until the GPU is idle.
  std::vector<float> error(int bucket) const;

 private:
  void make_room(GpuBucketData& data, const CommStep& step);
  void draw(std::size_t bucket);
  void put_q(GpuBucketData& data, std::size_t gradient, Stream stream);
  void cast(GpuBucketData& data, DType to, Stream stream);
  void pack(GpuBucketData& data, Stream stream);
  void unpack(GpuBucketData& data, Stream stream);
  void multiply(GpuBucketData& data, const CommStep& step, Stream stream);
  void collect(GpuBucketData& data, const CommStep& step);
  void scatter(GpuBucketData& data);
  void gather_scattered(GpuBucketData& data);
  void gather_and_add(GpuBucketData& data);
  void copy(Stream stream, void* to, const void* from, std::int64_t count, DType type);
  float mean() const { return 1.0F / static_cast<float>(collectives_.ranks()); }

  Gpu& gpu_;
  GpuMemory& memory_;
  GpuCollectives& collectives_;
  CommHook hook_;
  std::vector<GpuBucketData> buckets_;
  std::optional<TorchSeeds> seeds_;
  std::size_t next_seed_ = 0;  ///< the bucket it is for
};

}  // namespace ddpsim
