#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/timeline/busy_spans.hpp"
#include "model/timeline/why.hpp"

namespace ddpsim {

// What why.cpp and units.cpp both need to say what a collective waited for.

/// A collective could not begin before that, on this rank.
struct HeldUntil {
  Instant at;
  Cause cause;
};

/// Kernels of the pass that stood behind a collective whose result they do not need.
struct KernelsWaiting {
  Duration most{};  ///< how much of the collective they might have hidden
  Cause cause = Cause::kernels_wait;
};

/// Those of the backward pass behind a reduction, which the optimizer alone needs, and of either
/// pass behind a gather whose copies out come later: the first task of their stream that waits for
/// the collective comes before such a kernel. So is it without a stream for collectives (DeepSpeed
/// without overlap_comm), where the next input is packed into the memory of this one's
/// (fully_shard), on a host that computes, and in one queue (program/one_queue.hpp), where kernels
/// wait for it themselves. `most` is what follows on their stream until the pass ends, as long as
/// the stream stood still for the collective.
KernelsWaiting kernels_waiting(const RankOfJob& rank, std::uint32_t collective,
                               const BusySpans& busy);

/// What the exposed time is put down to that nothing held up: `waiting` first.
struct RestOfExposed {
  Cause cause = Cause::gradients;
  KernelsWaiting waiting{};
};

/// Shares a collective's exposed time, `told.times.exposed`, out among what held it up from
/// `times.ready` to `times.start`, the latest first, as long as there is exposed time to explain.
/// What a slower rank accounts for goes before that: from `arrival` on it was waited for. The rest
/// is put down to `rest`. Sorts `holds`.
void explain(ExposedBucket& told, std::span<HeldUntil> holds, Instant arrival,
             const BusySpans& busy, const RestOfExposed& rest);

/// The latest end of what a task waits for.
Instant inputs_of(const RankOfJob& rank, std::uint32_t task);

/// The ranks of a job, and where each has a collective that one of them has.
class AllRanks {
 public:
  AllRanks(const program::Job& job, const JobTimeline& timeline, std::size_t rank);

  const RankOfJob& own() const { return own_; }
  /// The one that came last to a collective, and later than this rank, which came at `arrived`.
  std::size_t last_to_arrive(std::uint32_t collective, Instant arrived) const;
  /// When the root of a broadcast had what it sends.
  Instant inputs_of_root(std::uint32_t collective) const;

 private:
  std::size_t first_of_own() const { return first_ranks(timeline_)[timeline_.class_of[number_]]; }
  /// Where another rank has the collective: in programs of the same step, whose tasks have the same
  /// deeds.
  std::optional<std::uint32_t> place_of(const RankOfJob& rank, std::uint32_t collective) const;

  const JobTimeline& timeline_;
  RankOfJob own_;
  std::size_t number_;
  std::vector<std::size_t> firsts_;  ///< [class]
  std::vector<RankOfJob> ranks_;     ///< [class]
};

}  // namespace ddpsim
