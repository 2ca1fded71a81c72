#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cost/calibration.hpp"

namespace ddpsim {

/// What measured times have in common, in at most three numbers.
///
///     time = constant + flops / arithmetic + bytes / bandwidth
///
/// A term that the measurements do not show is not there: its rate is infinite, its constant zero.
struct CostLaw {
  Duration constant{};
  FlopRate arithmetic{std::numeric_limits<double>::infinity()};
  Bandwidth bandwidth{std::numeric_limits<double>::infinity()};
  double residual = 0;  ///< median over the points of |law - measured| / measured
  int points = 0;       ///< measurements it was fitted to

  Duration time(double flops, Bytes bytes) const;
};

/// The law nearest to the measured medians: the sum of squared relative errors is smallest, under
/// the condition that no term is negative. Of laws equally near, the one of fewer terms is taken,
/// and among those bandwidth, or arithmetic for a GEMM, before the constant: so a single point, or
/// points of one size, give time in proportion to size. Entries without a positive time count
/// nowhere; nothing is returned if no other is left.
///
///     GEMMs of a type    constant + flops / arithmetic + bytes / bandwidth   flops = 2 m n k batch
///     streaming kernels  constant + bytes / bandwidth                        tasks without a GEMM
///     all-reduces        constant + bytes / bandwidth                        constant: latency
std::optional<CostLaw> fit_gemm(const std::vector<MeasuredWork>& tasks, DType type);
std::optional<CostLaw> fit_streaming(const std::vector<MeasuredWork>& tasks);
std::optional<CostLaw> fit_all_reduce(const std::vector<AllReduceCost>& points);

/// The law of InterferenceLaw seen in what was measured on a GPU, in its own terms. A term that was
/// not measured is zero.
struct InterferenceFit {
  double multiprocessors_taken = 0;  ///< share c / M: arithmetic-bound kernels take 1 / (1 - c / M)
  double taken_per_channel = 0;      ///< the same for each channel the all-reduces were allowed
  double memory_per_link_byte = 0;   ///< k: memory-bound kernels take 1 / (1 - k B / H)
  double bandwidth_lost = 0;         ///< g: a large collective beside kernels takes 1 / (1 - g)
  int points = 0;

  bool operator==(const InterferenceFit&) const = default;
};

/// Least squares on 1 - 1 / slowdown, which is linear in every term. H is the bandwidth of the
/// streaming law, B an all-reduce's bus bandwidth beside kernels. Nothing where kinds of kernels
/// were not told apart, or memory's bandwidth is not known.
std::optional<InterferenceFit> fit_interference(const Calibration& calibration);

/// One node of the ranks that were measured, linked as they were. Its device is named after the
/// CPU, with the bandwidth and the peaks of the laws above (of a law without that term, the best
/// that was seen), for what was not measured itself; without any measured task it has neither.
CalibratedCluster cluster_of(Calibration calibration);

/// A flat buffer taken anew each step has pages to which nobody has written: the time to fill it
/// says nothing of other work that moves memory.
inline bool may_take_new_memory(const Work& work) {
  return work.operation == Operation::concatenate;
}

}  // namespace ddpsim
