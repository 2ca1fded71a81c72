#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// What DistributedDataParallel's logger makes of one iteration: lengths between five marks on the
/// stream kernels run on (of a CPU: on the host).
///
///     forward start  before all else of forward: rebuild and broadcast of buffers count as forward
///     compute start  forward has ended
///     comm start     just before the first bucket is launched, even if its comm hook does nothing
///     compute end    backward has ended, copies into buckets included, nothing waited for yet
///     comm end         all has been waited for and copied back
///
/// So `backward_comm` holds pauses between collectives and copies back, and `overlap` is a window,
/// in which the link may have stood idle; neither is what StepMetrics calls communication and
/// overlap.
/// Source: pytorch logger.cpp, reducer_timer.hpp; rules R20 and R46.
struct DdpStatistics {
  Duration forward_compute{};             ///< compute start - forward start
  Duration backward_compute{};            ///< compute end - compute start
  std::optional<Duration> backward_comm;  ///< comm end - comm start; none: no bucket was launched
  /// Compute end - comm start; none: negative, which DDP drops.
  std::optional<Duration> overlap;

  bool operator==(const DdpStatistics&) const = default;
};

/// The logger's figures of the last micro-batch; none if it sees no step (program::Mark).
std::optional<DdpStatistics> ddp_statistics(const RankOfJob& rank);

/// The logger's averages, in its whole nanoseconds: avg = (x + avg (k - 1)) / k, where k counts
/// every sample, also those that lack a figure.
class DdpAverages {
 public:
  /// The first ten iterations, then every hundredth (rule R47).
  static bool samples(int iteration) { return iteration <= 10 || iteration % 100 == 0; }

  void add(const DdpStatistics& sample);

  std::int64_t avg_forward_compute_time() const { return forward_compute_; }
  std::int64_t avg_backward_compute_time() const { return backward_compute_; }
  std::int64_t avg_backward_comm_time() const { return backward_comm_; }
  std::int64_t avg_backward_compute_comm_overlap_time() const { return overlap_; }
  std::int64_t samples_taken() const { return samples_; }

 private:
  void average(std::int64_t& average, std::optional<Duration> value) const;

  std::int64_t samples_ = 0;
  std::int64_t forward_compute_ = 0, backward_compute_ = 0, backward_comm_ = 0, overlap_ = 0;
};

}  // namespace ddpsim
