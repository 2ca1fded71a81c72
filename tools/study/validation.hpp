#pragma once

#include <string>
#include <vector>

#include "backend/measure/check_gradients.hpp"
#include "backend/measure/measure_machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/timeline/breakdown.hpp"
#include "sim/predict/step.hpp"
#include "tools/study/grid.hpp"
#include "tools/study/slowed_ranks.hpp"

namespace ddpsim {

/// One strategy (and bucket cap, and what else varies), predicted and run for real.
struct ValidatedStep {
  std::vector<Setting> settings;  ///< what varies, as it is here
  Step predicted;
  /// Its timeline is that of the median step; its figures are medians over steps and over the ranks
  /// that are no exception.
  Step measured;
  Spread spread;  ///< of the measured steps
  Breakdown predicted_parts, measured_parts;
  GradientCheck gradients;
  std::uint64_t fingerprint = 0;  ///< of the job that was simulated and that every rank executed
  /// Where some ranks are exceptions and the strategy has buckets; measured: the mean over steps.
  std::optional<LateRank> predicted_late, measured_late;
  std::int64_t overflows = 0;  ///< 16-bit values beyond their type, of all ranks and steps

  /// Do the repeats disagree among themselves: ninth over first decile by more than a tenth?
  bool unsteady() const { return in_seconds(spread.high) > 1.1 * in_seconds(spread.low); }
};

struct Validation {
  Scenario scenario;  ///< with the cluster as it was calibrated
  Calibration calibration;
  std::string mode;           ///< "gloo, 2 ranks, TCP over loopback"
  bool busy_kernels = false;  ///< busy work stood for kernels without shapes
  /// Share of the processors' time that the machine's host took meanwhile (steal.hpp); the largest
  /// of any rank's machine.
  double stolen = 0;
  /// The share of a processor that other processes left over before the ranks began
  /// (backend/cpu/neighbours.hpp).
  double left_by_others = 1;
  std::vector<ValidatedStep> steps;  ///< the first one is `none`
  /// Steps of each, where the time was over before all that were wanted were measured.
  struct CutShort {
    int measured = 0, wanted = 0;
    Duration within{};
  };
  std::optional<CutShort> cut_short;
};

struct ValidateOptions {
  int steps = 20;  ///< of each strategy, after `warm_up`
  int warm_up = 5;
  /// About how long all may take, if that is limited: fewer steps are measured then, at least so
  /// many, after at least so many to warm up. Of the calibration: MeasureOptions.
  std::optional<Duration> within;
  int fewest_steps = 5, fewest_warm_up = 1;
  MeasureOptions measure;
  std::optional<Calibration> calibration;  ///< none: measured
};

/// What is compared: `none`, then each of `compare`, and `bucketed` once per cap if there are any.
std::vector<Training> trainings_to_validate(const Scenario& scenario,
                                            const std::vector<Bytes>& caps);

/// All of a job's ranks are taken as one node's: comm hooks divide by as many as there are.
CalibratedCluster side_by_side(CalibratedCluster cluster, int ranks);

/// The cluster of a scenario replaced by the calibrated machine, with so many ranks. Of how far
/// these differ counts what the calibration saw, not the scenario's skew.
CalibratedCluster calibrated_cluster(const Calibration& calibration, const Cluster& given,
                                     int ranks);

/// Throws std::invalid_argument if ranks cannot compute the optimizer's update and its time is not
/// known either.
void check_optimizer(const Scenario& scenario);

/// Calibrates, runs the job of every training (jobs_of), and predicts it. Strategies are
/// interleaved, and so are steps without communication, whose kernels replace the calibration's
/// (not those of a calibration that was given): what drifts does so for both sides. Called by every
/// rank; what rank 0 gets back is complete.
Validation validate(Backend& backend, Scenario scenario, const std::vector<Training>& trainings,
                    const std::vector<program::Job>& jobs, const ValidateOptions& options,
                    const Watch& watch);

}  // namespace ddpsim
