#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/measure/measure_collectives.hpp"
#include "backend/measure/measure_kernels.hpp"
#include "model/cost/calibration.hpp"

namespace ddpsim {

/// What is measured, and how often.
struct MeasureOptions {
  int repeats = 15;  ///< of every step, after `warm_up`
  int warm_up = 2;
  /// The caller measures kernels itself (MeasureKernels): here only as often as interference takes.
  bool kernels_follow = false;
  Bytes smallest{4 << 10}, largest{64 << 20};  ///< all-reduces, in factors of two
  /// Other collectives that are measured, and all-reduces of fewer ranks, from `smallest` up to the
  /// size of each, in factors of two. For backends that run jobs.
  std::vector<CollectiveCase> collectives;
  /// Longest time spent on the repeats of one all-reduce size (at least three are made); beside
  /// computation some three times as long, with three rounds at least. Up to three times all that
  /// where the machine's host takes its processors (steal.hpp).
  Duration patience = std::chrono::milliseconds{1800};
  /// About how long it all may take, if that is limited: fewer repeats are made then, three of an
  /// all-reduce and one beside computation at least. Kernels are measured as often all the same.
  std::optional<Duration> within;
};

/// Someone watches: progress for people, and whether to stop. `progress` is called on rank 0.
struct Watch {
  std::function<void(const std::string& what, double fraction)> progress;
  std::function<bool()> stop;
};

/// A calibration that says who measures, when, and for which workload, and holds nothing measured.
Calibration provenance_of(Backend& backend, const Workload& workload);

/// Measures what pricing a step of `workload` on these ranks takes:
///
///     kernels        every distinct kernel, copy, division and optimizer kernel of `steps`, as it
///                    runs inside those steps (caches as they find them, all ranks at once), with
///                    no communication; medians over repeats and ranks (measure_kernels.hpp)
///     all-reduces    of sizes in factors of two, one at a time, ranks idle
///     collectives    other collectives, one at a time, ranks idle, where options ask for them
///     launch         what issuing a collective and firing a hook cost the host, and that it waits
///                    for an all-reduce, or for an all-gather or a reduce-scatter that was measured
///     interference   a step without communication while all-reduces of one size run back to back,
///                    over the step alone, and the all-reduces over theirs alone; six sizes, of
///                    which those below 64 KiB (on synchronous devices alone) pause between two
///
/// `steps` are jobs of `workload`; the first must not communicate. Every rank gets all the result;
/// what the watch stopped half way is left out, and `complete` is false. Kernels a workload profile
/// gives times for are not measured. Communicates.
Calibration measure_machine(Backend& backend, const Workload& workload,
                            const std::vector<program::Job>& steps, const MeasureOptions& options,
                            const Watch& watch);

}  // namespace ddpsim
