#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/program/work.hpp"

namespace ddpsim {

/// A repeated measurement in three figures.
struct Spread {
  Duration median{};
  Duration low{}, high{};  ///< 10th and 90th percentile
  int repeats = 0;
  int outliers = 0;  ///< beyond three times the quartile distance from the nearer quartile

  bool operator==(const Spread&) const = default;
};

/// How long a piece of work takes on this machine, nothing communicating beside it. Of the work
/// only what `measured_as` keeps counts: the operation (one of kernel_operations), the GEMM, the
/// traffic (above zero), the type (fp32 for copies and divisions of any type), and whether it runs
/// aside.
struct MeasuredWork : Work {
  Spread time;

  bool operator==(const MeasuredWork&) const = default;
};
MeasuredWork measured(Operation operation, std::optional<Gemm> gemm, Bytes traffic, DType type,
                      const Spread& time, bool aside = false);

/// How much longer the tasks of an operation take together, in the median step, than their medians
/// added up: noise makes single tasks longer, never shorter.
struct OperationFactor {
  /// What a machine that computes may show. Beyond it the machine stood still.
  static constexpr double least = 0.1, most = 100;

  Operation operation = Operation::forward;
  double over_medians = 1;

  bool operator==(const OperationFactor&) const = default;
};

/// One point of the all-reduce table.
struct AllReduceCost {
  Bytes size;
  Spread time;  ///< from the last rank's arrival; above zero
  /// How long each takes where many follow one another, Calibration::collectives_at_once of them at
  /// the same time: what is no transfer hides behind the others. Above zero; none: not measured.
  std::optional<Duration> streamed{};

  bool operator==(const AllReduceCost&) const = default;
};

/// One point of the table of a kind of collective among so many ranks, all groups of so many ranks
/// at the same time.
struct MeasuredCollective {
  /// An all-reduce only of fewer ranks than measured: that of all ranks is an AllReduceCost.
  Operation operation = Operation::all_gather;
  int ranks = 2;  ///< of a group; 2 of a send/receive
  Bytes size;     ///< what each rank hands over, as Work::payload
  Spread time;    ///< from the last rank's arrival until the last rank is done; above zero

  bool operator==(const MeasuredCollective&) const = default;
};

/// The two of these whose times fall most with size, if the smaller took half as long again as the
/// larger or more: less is a protocol's change, this is noise. `all_reduce`: by size, growing.
std::optional<std::pair<AllReduceCost, AllReduceCost>> slower_small_all_reduce(
    const std::vector<AllReduceCost>& all_reduce);

/// How a stream of all-reduces of `size` and the computation beside it slow each other; 1 is not at
/// all.
struct MeasuredInterference {
  Bytes size;
  double compute_slowdown = 1;  ///< of kernels that arithmetic bounds, or of all
  double communication_slowdown = 1;
  std::optional<double> memory_slowdown{};  ///< of kernels that memory bounds, where told apart
  /// Thread blocks the all-reduces were allowed on a GPU; 0: as many as the library likes. Only
  /// those price a step; the others are for people.
  int channels = 0;

  /// Slowdowns below 1 are noise, which the law of interference knows; those beyond are no
  /// measurement.
  static constexpr double least = 0.01, most = 100;
  bool is_plausible() const {
    const auto within = [](double slowdown) { return slowdown >= least && slowdown <= most; };
    return within(compute_slowdown) && within(communication_slowdown) &&
           within(memory_slowdown.value_or(1));
  }

  bool operator==(const MeasuredInterference&) const = default;
};

/// What was measured of a machine and its link, enough to price any step on it. What an interrupted
/// measurement did not come to is empty, or zero in `launch`.
struct Calibration {
  // Provenance, for people.
  std::string backend;   ///< "gloo", "threads"
  std::string machine;   ///< host name and kernel
  std::string cpu;       ///< "AMD EPYC, 2 cores"
  std::string link;      ///< "lo, loopback"
  std::string versions;  ///< "ddpsim 0.1.0, Gloo 0.5.0, Eigen 3.4.0"
  std::string date;      ///< "2026-11-21T04:00:00Z"
  std::string workload;  ///< whose kernels were measured
  bool complete = true;  ///< false: interrupted; what is here was measured in full
  /// Why it is of little use, a sentence each: the machine was busy, say. None: nothing is known.
  std::vector<std::string> doubts;

  int ranks = 1;
  bool synchronous = true;          ///< kernels run on the host thread
  int collectives_at_once = 1;      ///< of one communicator, as the backend has them under way
  Launch launch;                    ///< host time of a kernel, a collective, a hook
  std::vector<MeasuredWork> tasks;  ///< each piece of work once
  /// How much longer than typical the slowest rank computes, in the median step.
  double slowest_rank = 1;
  /// How much longer the backward pass computes where a comm hook computes aside, what takes its
  /// place on the processor not counted: caches are shared. Of the hook and buckets that were
  /// measured (the first of several), and taken for any. At least 1.
  double backward_beside_hook = 1;
  std::vector<OperationFactor> factors;            ///< at most one per operation; none: 1
  std::vector<AllReduceCost> all_reduce;           ///< by size, growing; none of one rank
  std::vector<MeasuredCollective> collectives;     ///< each kind, ranks and size once
  std::vector<MeasuredInterference> interference;  ///< by channels, then size

  bool operator==(const Calibration&) const = default;
};

/// A cluster and what was measured of it, if anything: that goes before every law of kernels,
/// collectives and interference, except where `collectives` or `interference` say otherwise.
struct CalibratedCluster : Cluster {
  CalibratedCluster() = default;
  CalibratedCluster(Cluster cluster) : Cluster(std::move(cluster)) {}  // NOLINT: nothing is lost

  std::optional<Calibration> calibration;
};

}  // namespace ddpsim
