#pragma once

#include <vector>

#include "backend/device/cuda/gpu.hpp"
#include "backend/execute/link.hpp"

namespace ddpsim {

/// Where a collective is enqueued.
struct CollectivePlace {
  int communicator = 0;
  GpuStream stream = first_stream;
  std::byte* room = nullptr;  ///< memory of the stream's own, as much as `room_for` says
};

/// What the collectives of jobs are on a GPU: NCCL's calls, with what is copied around them.
class RankCollectives {
 public:
  explicit RankCollectives(Gpu& gpu) : gpu_(gpu) {}
  virtual ~RankCollectives() = default;

  /// The room that a collective takes besides what it works on. Call this before a step.
  virtual Bytes room_for(const program::Collective& collective, const execute::Exchange& exchange);
  virtual void run(const program::Collective& collective, const execute::Exchange& exchange,
                   const CollectivePlace& place);
  /// Calls that make one all-reduce.
  virtual int calls() const { return 1; }

 protected:
  /// to: the parts of all ranks; each has as many elements as `from`.
  virtual void gather(const execute::Piece& to, const execute::Piece& from,
                      const execute::Group& group, const CollectivePlace& place);
  /// Kernels that add up what came of all ranks into `to`, of which it is the mean if `mean`.
  void add_up(const execute::Piece& to, const execute::Piece& parts, std::int64_t ranks, bool mean,
              const CollectivePlace& place);
  void copy(const execute::Piece& to, const execute::Piece& from, GpuStream stream);

  Gpu& gpu_;

 private:
  void gather_in_place(const execute::Exchange& exchange, const CollectivePlace& place);
  void scatter(const execute::Exchange& exchange, bool mean, const CollectivePlace& place);
  void all_to_all(const execute::Piece& to, const execute::Piece& from, const execute::Group& group,
                  const CollectivePlace& place);
};

/// One rank stands for all of a group, and moves to itself, and adds up, what a rank of a ring
/// would; this leaves values as they are, and gathers zeros from the ranks that are not there.
class LoopbackCollectives : public RankCollectives {
 public:
  using RankCollectives::RankCollectives;

  Bytes room_for(const program::Collective& collective, const execute::Exchange& exchange) override;
  void run(const program::Collective& collective, const execute::Exchange& exchange,
           const CollectivePlace& place) override;
  int calls() const override { return 2; }

 protected:
  void gather(const execute::Piece& to, const execute::Piece& from, const execute::Group& group,
              const CollectivePlace& place) override;

 private:
  void reserve_zeros(Bytes size);
  void exchange(const std::byte* from, std::byte* to, Bytes size, const CollectivePlace& place);

  std::shared_ptr<std::byte> zeros_;
  Bytes zeros_size_;
};

/// The part of a rank where all have ceil(elements / ranks), the last ones fewer or none.
struct RankPart {
  RankPart(std::int64_t elements, std::size_t ranks, std::int32_t place);
  std::int64_t size;  ///< of any, the last ones padded
  std::int64_t begin, count;
};

}  // namespace ddpsim
