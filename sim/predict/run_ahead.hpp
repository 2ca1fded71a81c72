#pragma once

#include <cstddef>
#include <vector>

#include "model/base/quantity.hpp"
#include "sim/predict/step_sequence.hpp"

namespace ddpsim {

/// Consecutive steps in which the host of an asynchronous device runs ahead: it launches the next
/// step while the device still works on the last, unless DDP's logger makes it wait
/// (joined_steps.hpp). No step waits for its batches.
struct RunAhead {
  /// [step] from the moment the device was done with all steps before to the moment it is done with
  /// this one as well, on all ranks.
  std::vector<Duration> periods;
  struct HostWait {
    std::size_t step = 0;  ///< at whose forward
    Duration time{};       ///< the host of rank 0 stood still
  };
  std::vector<HostWait> waits;  ///< for the timers of sampled iterations, in order

  Duration total() const;  ///< sum of the periods
  Duration waited() const;
};

/// Tasks of all steps (and, where a calibration tells them apart, ranks) that are simulated as one:
/// some 170 bytes each.
inline constexpr std::size_t most_joined_tasks = 6'000'000;

/// Simulates the steps of `steps` as one run.
/// Throws std::invalid_argument if the device is synchronous (the host computes itself), if there
/// are more than `most_joined_tasks` tasks, or if the run is longer than 30 days.
RunAhead run_ahead(const StepModel& model, const ConsecutiveSteps& steps);

}  // namespace ddpsim
