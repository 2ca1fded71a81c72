#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/measure/task_kind.hpp"
#include "model/cost/calibration.hpp"

namespace ddpsim {

/// A set of repeated measurements in three figures. Throws std::invalid_argument if there are none.
Spread spread_of(std::vector<Duration> samples);

/// What the kernels of some steps take, in steps that do not communicate, run in turns:
///
///     plain     nothing beside them
///     hooked    on synchronous devices, steps whose comm hook computes aside. Its collectives last as
///               long as all-reduces of their size do alone, and move nothing; so what it computes
///               aside finds the caches that backward leaves, and backward those that it leaves. Times
///               are those the processor gave, by as much longer as the first step takes by the clock
///
/// Everything communicates: every rank calls the same. A comm hook needs to have communicated before.
class MeasureKernels {
 public:
  /// `steps` are schedules of `workload`, the first without communication; all must outlive it.
  MeasureKernels(Backend& backend, const Workload& workload, Optimizer optimizer,
                 const std::vector<Schedule>& steps);

  bool has_hooked() const { return !hooked_.steps.empty(); }
  /// Each of the steps once; it only warms up if it does not count.
  void run_plain(bool counts);
  void run_hooked(const std::vector<AllReduceCost>& all_reduces, bool counts);

  /// What computing the first step takes, nothing beside it: median over ranks and rounds, in seconds.
  double computing_first() const { return computing_first(plain_); }

  /// How much longer backward takes in the micro-batches for which there is this comm hook than in those
  /// of the first step: what counted so far. 1 of a hook that computes nothing aside. None: of all hooks.
  double backward_beside(const std::optional<CommHook>& hook) const;

  /// Tasks, factors, slowest_rank and backward_beside_hook of what counted so far, in place of what the
  /// calibration has. A kind that is in plain steps as well has its time from them.
  void put_into(Calibration& calibration) const;

 private:
  struct Measured {
    std::vector<const Schedule*> steps;
    std::map<TaskKind, std::vector<Duration>> samples;
    std::vector<std::pair<const Schedule*, Timeline>> timelines;
  };
  using Medians = std::map<TaskKind, double>;  ///< seconds

  void run(Measured& measured, const RunOptions& how, bool counts);
  static void add(const Measured& measured, double factor, Medians& medians,
                  Calibration& calibration);
  std::map<Operation, double> over_medians(const Measured& measured, const Medians& medians) const;
  double computing_first(const Measured& measured) const;
  double slowest_rank() const;

  Backend& backend_;
  TaskKinds kinds_;
  const Schedule& first_;
  Measured plain_, hooked_;
};

}  // namespace ddpsim
