#pragma once

#include <optional>
#include <vector>

#include "model/parallel/memory/peak_memory.hpp"
#include "sim/predict/step_sequence.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/measured_rows.hpp"
#include "tools/study/names.hpp"
#include "tools/study/scaling.hpp"

namespace ddpsim {

/// A step, predicted or measured, with the two it is judged by.
struct Result {
  const Step* step = nullptr;
  const StepMetrics* none = nullptr;   ///< the same step without communication
  const StepMetrics* naive = nullptr;  ///< the same step under `naive`
  // Zero: not known.
  Duration one_rank{};  ///< the step of one rank that trains by itself
  Duration one_node{};  ///< the step of one node, where there are several
  /// The mean of such steps in the long run, of which some average models (post_local_sgd).
  Duration averaged{};
  const StepMemory* memory = nullptr;  ///< that it takes; null: not reckoned yet

  /// How long a step takes in the long run.
  Duration lasting() const { return averaged > Duration::zero() ? averaged : step->metrics.step; }
  double speedup() const { return in_seconds(naive->step) / in_seconds(step->metrics.step); }
};

/// Every strategy a scenario compares, predicted at one price.
struct Comparison {
  Scenario scenario;
  CalibratedModel priced;
  Step none, naive;  ///< what the others are judged by
  std::vector<Step> compared;
  /// [compared] Where ranks share the update: without communication, with passes in the strategy's
  /// mixed precision and an optimizer that updates one part. None: `none` is that.
  std::vector<std::optional<Step>> alone;
  std::vector<std::optional<AveragedStep>> averaged;  ///< [compared]; none: no models are averaged
  std::vector<StepMemory> memories;                   ///< [compared]
  ScalingReference reference;                         ///< of `compared`
  Knowledge knowledge;                                ///< what all of these are predicted from

  /// Calibrated on the scenario's measured rows, unless `laws_only`.
  Comparison(Scenario read, bool laws_only);

  /// The results point into this object and must not outlive it.
  std::vector<Result> results() const;
  std::vector<NamedStep> named() const;
  /// What a step that is compared would be.
  const StepMetrics& without_communication(const Step& of) const;

 private:
  Step step(Strategy strategy) const;
};

}  // namespace ddpsim
