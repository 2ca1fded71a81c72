#pragma once

#include <string_view>
#include <vector>

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// What a step's length is made of, along its critical path; `interference`: what kernels take
/// longer than by themselves; `input`: all of it has ended, and its next batches are not there yet.
enum class Bound : std::uint8_t { compute, bandwidth, latency, launch, interference, input };
std::string_view name_of(Bound bound);

struct BucketTimes {
  Instant ready{};  ///< its last gradient was in place on the device
  Instant start{};  ///< its first collective began, on all ranks
  Instant end{};    ///< its last collective ended; a comm hook may have several
  /// The part of all of these during which the compute stream stood still; copies to the host and
  /// back count too, as far as no collective was under way.
  Duration exposed{};
  Duration host_copies{};     ///< of it, those copies
  CollectiveChoice choice{};  ///< of its first collective, where a prediction knows it
};

/// The figures of one step, of one rank.
struct StepMetrics {
  /// From the first task to the end of the last, everywhere, and until the next batches are there.
  Duration step{};
  Duration input_wait{};  ///< of it, the wait for these batches, behind the last task
  Duration forward{};     ///< spans of the forward passes, as they ran
  Duration backward{};   ///< from loss to last gradient, as it ran: with interference and copies in
  Duration optimizer{};  ///< span of the optimizer's kernels
  /// For how long collectives, each from the last rank's arrival, or their copies to the host and
  /// back were under way; those of the network itself apart, which the step of `none` has too.
  Duration communication{};
  int collectives = 0;  ///< of these
  Bytes payload;        ///< handed to the collectives
  /// As `payload`, but gathers and reduce-scatters of what ranks keep parts of count what crosses
  /// the rank's port: (W - 1) / W of the whole.
  Bytes wire;
  Duration comm_hook{};              ///< sum of the comm hook's kernels
  std::vector<BucketTimes> buckets;  ///< [bucket], of its last all-reduce
  /// What most of the critical path is; input, where the step waits for it.
  Bound bound = Bound::compute;

  /// Until the last task has ended.
  Duration working() const { return step - input_wait; }
};

/// The figures of one rank of a job. Buckets are the groups that its tasks come from
/// (program::Origin).
StepMetrics measure(const program::Job& job, const JobTimeline& timeline, std::size_t rank);

/// StepMetrics::communication alone.
Duration communication_of(const RankOfJob& rank);

/// Exposed communication: how much longer the step is than without any. Waits for batches are left
/// out of both: what such a wait covers is not hidden by computation.
inline Duration exposed(const StepMetrics& step, const StepMetrics& none) {
  return step.working() - none.working();
}
/// 1 - exposed / communication, kept within 0 and 1 (a measured step may be shorter than the one it
/// is compared with); 1 when nothing is communicated.
double overlap_ratio(const StepMetrics& step, const StepMetrics& none);

/// One link of the critical path: this task, and which of its times held up what follows.
struct CriticalPiece {
  std::uint32_t task = 0;
  bool on_host = false;  ///< the host's enqueueing of it, rather than its work
  Duration length{};
};

/// The chain of pieces, first to last, each beginning when the one before ends, that ends with the
/// rank's last task. Gaps (a rank waiting for its peers) belong to no piece.
std::vector<CriticalPiece> critical_path(const RankOfJob& rank);

}  // namespace ddpsim
