#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/parallel/order/build_job.hpp"
#include "model/parallel/training.hpp"
#include "sim/engine/activity.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/predict/simulated_ranks.hpp"
#include "sim/predict/step_model.hpp"
#include "sim/tune/partition.hpp"

namespace ddpsim {

/// The length of a step in buckets under one bucketing after another: what a tuner asks thousands
/// of times. The same to the tick as step_length(), and so as predict(model, training).metrics.step
/// but where slowest_rank_decides: there that rank alone is followed. Of the job it knows all
/// but the buckets: those only decide where collectives are launched and waited for, so nothing
/// else is built anew, and a kernel costs a few nanoseconds.
///
/// `training` says everything but the buckets. Gradients are spoken of by position: their place in
/// the order they arrive in (StepWorks::arrival). Not for several threads at once; copies are
/// independent.
/// Throws std::invalid_argument as build_job does.
class BucketSteps {
 public:
  /// `link_factor`: how many times longer all-reduces take than `model` says.
  BucketSteps(StepModel model, Training training, double link_factor = 1);
  /// The steps of `other` with the prices of `costs`, which must be of the same cluster.
  BucketSteps(const BucketSteps& other, const CostModel& costs, double link_factor = 1);

  /// From here on all-reduces cost what `costs` says, which differ from those before in their links
  /// alone (CostModel::use_links): nothing else is priced anew.
  void take_links(const CostModel& costs);

  /// Why the programs of these steps differ in more than a launch and a wait for each bucket
  /// (BucketMarks::why_more). Then every step takes build_job and simulate, a hundred times as
  /// long, and ideal() and backward() are not to be asked for.
  std::optional<std::string_view> why_simulated() const { return why_simulated_; }

  /// The step with contiguous buckets: `ends` has one past the last position of each, growing, the
  /// last one size(). Allocates nothing. Of a step longer than `limit` the result says only that it
  /// is longer than `limit`.
  Duration of(std::span<const int> ends, Duration limit = Duration::max());
  /// The step with any buckets, as in Training::buckets. Buckets that are not contiguous in arrival
  /// order take a hundred times as long: they go through build_job and simulate.
  Duration of(const std::vector<std::vector<int>>& buckets);
  /// How long the step that was asked for last waits for its batches (StepMetrics::input_wait).
  Duration input_wait() const { return input_wait_; }

  /// What a bucketing costs at least: the same step with nothing slowing anything and one launch in
  /// front of each bucket; of the slowest rank. With interference, more launches or other ranks no
  /// instant comes earlier. `cost` prices with this object.
  PartitionProblem ideal();
  /// The computation beside which buckets are reduced, if they slow nothing; of the slowest rank.
  struct Backward {
    std::vector<Instant> at;     ///< [gradient] computation is so far when its hook has fired
    std::vector<Duration> left;  ///< [gradient] and has so much work left before the first wait
    float memory_fraction = 1;   ///< the least of a kernel in it
    float launch_rate = 0;       ///< likewise
    std::int64_t kernels = 0;
  };
  Backward backward() const;

  /// A bucket's all-reduce by itself, and what it and the kernels beside it do to each other.
  struct AllReduce {
    Duration work{};
    Interference beside;
  };
  /// Valid until the next call.
  const AllReduce& price(Bytes size);

  int size() const { return static_cast<int>(before_.size()) - 1; }  ///< gradients
  std::uint64_t evaluated() const { return evaluated_; }             ///< steps so far

 private:
  struct Item {
    enum class Kind : std::uint8_t { kernel, host, launch, wait, fixed_launch, fixed_wait };
    Kind kind = Kind::kernel;
    float memory_fraction = 0, launch_rate = 0;
    /// launch: hooks fired before it, in its round; wait: of a gradient; fixed_launch: which;
    /// fixed_wait: collectives issued since the one it waits for.
    std::int32_t position = 0;
    Duration host{};  ///< synchronous: the host's own time before the work
    Duration
        first{};  ///< asynchronous: the first launch is in, if no bucket cost the host anything
    Duration drained{};  ///< asynchronous: it ends no earlier, likewise
    Duration work{};
  };
  /// Where a step begins to depend on its buckets.
  struct Start {
    std::size_t item = 0;
    Instant time{};
  };
  /// A rank under way.
  struct Lane {
    std::vector<Item> items;
    std::vector<Duration> left;  ///< [item] the work from there on
    std::vector<Start> starts;   ///< [hooks fired] of the first round; empty: from the beginning
    std::vector<std::size_t> launches;  ///< [hooks fired] item, in the last round
    std::size_t last_round = 0;  ///< item: from there to the last launch nothing is waited for
    /// [k][item - last_round], up to the last launch: of it and the 2^k - 1 behind it, the latest
    /// bound that the host sets to one of them, plus the work behind that. Only if this is the only
    /// lane.
    std::vector<std::vector<Duration>> held_up;
    std::vector<Instant> taken_up;  ///< [collective] the earliest its stream takes it up
    std::size_t next = 0;           ///< item
    std::size_t bucket = 0;         ///< the next to be launched in this round
    std::size_t issued = 0;         ///< collectives
    std::size_t round_begin = 0;    ///< the first collective of this round's buckets
    Duration shift{};               ///< what launching buckets has cost the host
    Instant host_clock{};           ///< synchronous
    Instant wake{};                 ///< when it can go on, if that is later than now
    Instant end{};                  ///< of what it computes
    Instant drained{};
    Activity computing;
    float memory_fraction = 0, launch_rate = 0;
    bool busy = false, draining = false, fresh = false, arrived = false;
  };
  /// Prices of all-reduces by size: a hash table that grows up to a limit.
  struct Price {
    std::int64_t bytes = -1;
    AllReduce collective;
  };

  void take_costs(double link_factor);
  void compile(const Costs& costs, std::span<const JobCosts::Pause> pauses);
  struct Writing;
  void write_marked(Writing& writing, const BucketMark& mark, const program::Task& task,
                    const WorkCost& cost);
  void write_other(Writing& writing, std::uint32_t t, const WorkCost& cost);
  void write_work(Writing& writing, const program::Task& task, const WorkCost& cost);
  void finish(Lane& lane);
  Duration simulated(const std::vector<std::vector<int>>& buckets);
  void find_starts(Lane& lane) const;
  void find_jumps(Lane& lane) const;
  static Instant alone_until(const Lane& lane, std::size_t item, Instant now);
  void prepare(std::span<const int> ends);
  template <bool synchronous>
  Instant run(Instant limit);
  template <bool synchronous>
  bool advance(Lane& lane);
  template <bool synchronous>
  void race(Lane& lane);
  template <bool synchronous>
  bool pass(Lane& lane, const Item& item);
  bool arrive();
  void set_rates();
  Instant soonest() const;
  void take_events();

  /// What a lane does while no bucket is launched.
  struct Alone {
    std::vector<Instant> at;     // [hooks fired], of the last round
    std::vector<Duration> host;  // likewise: the host has come so far
    std::vector<std::size_t> item;
    Instant end{};
  };
  Alone alone(const Lane& lane) const;

  StepModel model_;
  Training training_;
  OneBucket whole_;  // all gradients in one bucket
  std::optional<std::string_view> why_simulated_;
  Duration input_wait_{};  // none, where steps are not simulated as a whole
  bool synchronous_ = false;
  Duration launch_host_{};     // to issue a bucket's all-reduce
  Duration handover_{};        // to its being taken up
  Duration wait_host_{};       // to go on behind a wait for one; synchronous
  std::vector<Bytes> before_;  // [position] of the gradients before it; one more than there are
  std::vector<std::int32_t> fired_;  // [position] hooks fired when all up to it have
  std::vector<AllReduce> fixed_;     // broadcasts, in issue order; none among a round's buckets
  std::vector<std::uint32_t> fixed_tasks_;  // [fixed] of `whole_`
  std::vector<Lane> lanes_;
  std::vector<Price> prices_;
  std::size_t priced_ = 0;
  AllReduce unkept_;  // the latest price beyond the limit
  std::uint64_t evaluated_ = 0;

  // State of the step that is being computed.
  std::vector<AllReduce> buckets_;          // [bucket]
  std::vector<std::int32_t> launch_after_;  // [bucket] hooks fired
  std::vector<std::int32_t> bucket_at_;     // [position] that begins there, or nobody
  std::vector<const AllReduce*> issued_;    // [collective]
  std::vector<int> contiguous_;             // ends, where buckets were given in full
  std::size_t head_ = 0;                    // the collective now on
  std::size_t arrived_ = 0;                 // lanes there
  bool transferring_ = false, fresh_transfer_ = false;
  double beside_compute_ = 1;
  Activity transfer_;
  Instant transfer_end_{};
  Instant now_{};
};

}  // namespace ddpsim
