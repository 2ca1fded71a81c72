#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/device/cuda/gpu_clock.hpp"
#include "backend/execute/link.hpp"
#include "backend/link/nccl/gpu_link.hpp"
#include "backend/link/nccl/rank_collectives.hpp"

namespace ddpsim {

/// Ranks on GPUs that speak by NCCL: a communicator of NCCL's for each of a job's, of which every
/// group has one of its own. What ranks tell each other of time travels between their hosts.
///
/// All of it is enqueued, on the stream of the GPU that has the number of the job's stream.
class NcclLink : public execute::Link {
 public:
  /// `ranks`: those that there are. All must outlive this object.
  NcclLink(Gpu& gpu, GpuClock& clock, Communicator& hosts, const GpuLink& link, int rank,
           int ranks);

  /// Connects all ranks, anew if they were; see Gpu::connect.
  void connect(int channels);
  /// Ranks that a job is made for: those there are, or those that this one stands for.
  int ranks() const { return is_loopback() ? link_.loopback : ranks_; }
  /// How many ranks' values this one stands for.
  int stands_for() const { return is_loopback() ? link_.loopback : 1; }

  std::string refusal(const program::Action& action, DType type) const override;
  void begin(const execute::Running& running) override;
  void run(const program::Collective& collective, const execute::Exchange& exchange) override;
  void send(std::int32_t peer, const execute::Exchange& exchange) override;
  void receive(std::int32_t peer, const execute::Exchange& exchange) override;
  void start_together() override { clock_.start_together(); }
  Instant now() const override { return clock_.now(); }
  void meet() override { clock_.meet(); }
  std::vector<Instant> latest(std::vector<Instant> mine) override {
    return clock_.latest(std::move(mine));
  }
  void disconnect() override { gpu_.abort(); }

  /// Room for all-reduces of `size` of values that are nobody's, on a stream; call this before a
  /// step.
  void reserve_values(Bytes size, GpuStream stream);
  /// An all-reduce, among all, of reserved values: another place each time, as gradients are, and
  /// more of them than the L2 cache holds.
  void reduce_values(Bytes size, GpuStream stream, int communicator = 0);
  /// NCCL's number of a communicator of the job that has begun.
  int number_of(std::int16_t communicator) const { return numbers_[at(communicator)]; }
  int calls() const { return collectives_->calls(); }

 private:
  using Groups = std::vector<std::vector<std::int32_t>>;

  bool is_loopback() const { return link_.mode == GpuLink::Mode::loopback; }
  int communicator_for(const Groups& groups, int occurrence);
  void reserve_room(GpuStream stream, Bytes size);

  Gpu& gpu_;
  GpuClock& clock_;
  Communicator& hosts_;
  GpuLink link_;
  int rank_, ranks_;
  std::unique_ptr<RankCollectives> collectives_;
  std::vector<int> numbers_;                    ///< [communicator] of the job
  std::map<std::pair<Groups, int>, int> made_;  ///< and its how manyth of such groups
  std::vector<std::int32_t> everyone_;
  const program::Job* job_ = nullptr;
  struct Room {
    std::shared_ptr<std::byte> memory;
    Bytes size;
  };
  std::map<GpuStream, Room> rooms_;
  Room values_;
  std::int64_t next_value_ = 0;
};

}  // namespace ddpsim
