#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/timeline/ddp_statistics.hpp"
#include "sim/predict/step.hpp"
#include "sim/predict/step_model.hpp"

namespace ddpsim {

/// Steps one after the other, from the first of a training on; each begins when the one before has
/// ended on all ranks.
struct ConsecutiveSteps {
  /// The steps that differ, each simulated once. Training::iteration of each is the first iteration
  /// that is like it (0: all iterations are).
  std::vector<Step> kinds;
  std::vector<std::int32_t> sequence;  ///< [step] index into `kinds`
  std::vector<std::int64_t> counts;    ///< [kind] steps
  DdpAverages logged;                  ///< by DDP's logger; no samples where none logs

  double total_seconds() const;
  double working_seconds() const;  ///< without waits for batches
};

inline constexpr int most_steps = 1'000'000;

/// A steady step whose models are averaged now and then, with its share of that.
struct AveragedStep {
  int period = 1;        ///< steps, in one of which models are averaged
  Duration averaging{};  ///< that one
  Duration mean{};       ///< of all
};
/// The period, length and mean of steps of which some average models, where all others are like
/// `steady` (Training::iteration 0); none if no models are averaged.
std::optional<AveragedStep> averaged_step(const StepModel& model, const Step& steady);

/// Iterations 1 to `count` of `training` (iteration.hpp says how they differ).
/// Throws std::invalid_argument unless 1 <= count <= most_steps.
ConsecutiveSteps consecutive_steps(const StepModel& model, const Training& training, int count);

}  // namespace ddpsim
