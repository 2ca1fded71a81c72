#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/measure/samples.hpp"
#include "model/cost/calibration.hpp"
#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// What the kernels of some steps take, in steps that do not communicate, run in turns:
///
///     plain     nothing beside them
///     hooked    on synchronous devices, steps whose comm hook computes aside. Its collectives last
///               as long as all-reduces of their size do alone, and move nothing; so what it
///               computes aside finds the caches that backward leaves, and backward those that it
///               leaves. Times are those the processor gave, by as much longer as the first step
///               takes by the clock
///
/// Everything communicates: every rank calls the same. A comm hook needs to have communicated
/// before.
class MeasureKernels {
 public:
  /// The first of `steps` does not communicate; all must outlive this object.
  MeasureKernels(Backend& backend, const std::vector<program::Job>& steps);

  bool has_hooked() const { return !hooked_.runs.empty(); }
  /// Each of the steps once; it only warms up if it does not count.
  void run_plain(bool counts);
  void run_hooked(const std::vector<AllReduceCost>& all_reduces, bool counts);

  /// What computing the first step takes, nothing beside it: median over ranks and rounds, in
  /// seconds.
  double computing_first() const { return computing_first(plain_); }

  /// How much longer backward takes in the micro-batches in which a comm hook computes than in
  /// those of the first step: what counted so far. 1 if the hook computes nothing beside the
  /// backward pass. `hook`: of the steps with this one (Job::hook). None: of all of them.
  double backward_beside(const std::optional<std::string>& hook) const;

  /// Tasks, factors, slowest_rank and backward_beside_hook of what counted so far, in place of what
  /// the calibration has. Work that is in plain steps as well has its time from them.
  void put_into(Calibration& calibration) const;

 private:
  /// A step as it is run, and what came out.
  struct Run {
    const program::Job* step = nullptr;
    program::Job executed;  ///< without communication
    std::vector<JobTimeline> timelines{};
  };
  struct Measured {
    std::vector<Run> runs;                       ///< the first is of the first step
    WorkTable works;                             ///< as calibrations know them
    std::vector<std::vector<Duration>> samples;  ///< [of works]
  };
  /// Seconds, of each piece of work as calibrations know it.
  using Medians = std::unordered_map<Work, double, WorkHash>;

  void run(Measured& measured, const RunOptions& how, bool counts);
  static void add(const Measured& measured, double factor, Medians& medians,
                  Calibration& calibration);
  static std::map<Operation, double> over_medians(const Measured& measured, const Medians& medians);
  static double computing_first(const Measured& measured);
  double slowest_rank() const;

  Backend& backend_;
  Measured plain_, hooked_;
};

}  // namespace ddpsim
