#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "model/timeline/metrics.hpp"

namespace ddpsim {

/// What keeps a bucket's collectives from hiding behind computation.
enum class Cause : std::uint8_t {
  gradients,     ///< they came so late that even begun at once it would not hide: its own length
  turn,          ///< it was called later: buckets go in order, some strategies only after backward
  previous,      ///< the collective before it had not ended
  launch,        ///< the host had not launched it
  slowest_rank,  ///< other ranks arrived later, so that less computation was left to hide it
  host_copies,   ///< it waited for its copy to the host, or the copies themselves are exposed
  hook,  ///< a later collective waited for the comm hook's steps before it: ZeRO's for the update
  kernels_wait,  ///< kernels that do not need its result had to wait for it (collective_waits.hpp)
  // Units alone have these (units.hpp).
  copy_out,      ///< a gather waited until the one before it had been copied out
  input_buffer,  ///< the memory of a reduction's input was taken by an earlier one
  itself,        ///< a gather that begins with the step would be exposed as long
  one_queue,     ///< all streams share a queue, in which it, or kernels behind it, had to wait
};
inline constexpr std::array all_causes{Cause::gradients,    Cause::turn,         Cause::previous,
                                       Cause::launch,       Cause::slowest_rank, Cause::host_copies,
                                       Cause::hook,         Cause::kernels_wait, Cause::copy_out,
                                       Cause::input_buffer, Cause::itself,       Cause::one_queue};
/// Those of units alone.
constexpr bool is_of_units(Cause cause) {
  return cause == Cause::copy_out || cause == Cause::input_buffer || cause == Cause::itself ||
         cause == Cause::one_queue;
}
std::string_view name_of(Cause cause);

/// Why a bucket was exposed: the instants its collective could not begin before, and how much of
/// its exposed time each accounts for. Where a comm hook has several collectives, the instants are
/// those of the one that is exposed longest, the last of equals.
struct ExposedBucket {
  std::size_t bucket = 0;  ///< program::Origin::group
  int collectives = 1;     ///< of its last micro-batch
  /// ready is the gradients', exposed > 0 of all collectives, the others of the one told.
  BucketTimes times;
  /// What has to end before it on the device had ended; of a broadcast: on its owner's device too.
  Instant called{};
  Instant previous{};  ///< the collective before it had ended; zero: there was none
  Instant issued{};    ///< the host began to launch it
  Instant launched{};  ///< it could be taken up: enqueued and handed over
  std::array<Duration, all_causes.size()> exposed_by{};  ///< [Cause] sums to times.exposed
  Cause cause = Cause::gradients;  ///< the one that accounts for most; the first of equals
  /// The first of the ranks that all others waited for; this one where none came later than it.
  std::size_t last_rank = 0;

  Duration by(Cause each) const { return exposed_by[static_cast<std::size_t>(each)]; }
};

/// Every bucket with exposed time, in order of bucket; of one rank.
///
/// A collective begins with the latest of: its gradients are ready, it is called, the one before it
/// has ended, it is launched; and then when the last rank arrives. A bucket's exposed time begins
/// with the collective, so the wait for the last rank is no part of it: that rank accounts for as
/// much as the collective would be exposed less if it had begun when this rank was there. Between
/// the gradients and that moment each instant accounts for the time since the one before it, and
/// what the last of them would have saved is taken off the exposed time first. What is left would
/// be exposed even if the collective had begun with its gradients: that is theirs, but for what
/// kernels of the backward pass had to wait for it. Each collective
/// of a comm hook is explained by itself, and a bucket's shares are the sums over them. Of a later
/// one, the time until it is called is the hook's, and so is that of the hook's own one before it.
/// Where a collective waits for its copy to the host, the time until it is called is the copies',
/// and so is what the copies themselves are exposed.
///
/// Example: ready at 10, called at 10, previous end at 13, launched at 14, start at 16, end at 21,
/// kernels until 15: 5 are exposed. From 14 to 19 it would be 4, so the slowest rank accounts for
/// 1, the launch for 1, and the previous collective for 3.
std::vector<ExposedBucket> why_exposed(const program::Job& job, const JobTimeline& timeline,
                                       const StepMetrics& metrics, std::size_t rank);

/// Whom a rank waited for at a bucket's last collective, exposed or not, and how long; itself, and
/// not at all, where none came later.
struct WaitForRank {
  std::size_t rank = 0;
  Duration waited{};
};

/// Those of every bucket that has a collective, in order of bucket; of one rank.
std::vector<WaitForRank> waits_for_ranks(const program::Job& job, const JobTimeline& timeline,
                                         const StepMetrics& metrics, std::size_t rank);

}  // namespace ddpsim
