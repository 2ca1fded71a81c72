#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/cost/calibration_fit.hpp"

namespace ddpsim {

/// Times of kernels and copies on a machine that was measured.
///
///     measured itself (same operation,    its median
///     GEMM, traffic and type)
///     a GEMM that was not                 the law fitted to GEMMs of its type
///     what only moves memory              between entries of its operation, or, if it has none,
///                                         of any
///
/// of those aside for what runs aside and of the others for the rest, or, where those do not have
/// it, the others; each times the calibration's factor of that operation. Between two entries
/// logarithms of traffic and time are interpolated; beyond the ends their slope goes on, kept
/// within 0 (more traffic never takes less time) and 1 (nor more than in proportion); one entry
/// gives time in proportion to traffic. Entries of equal traffic count as one, at the geometric
/// mean of their times.
class CalibratedTimes {
 public:
  explicit CalibratedTimes(const Calibration& calibration);

  /// The time of any kernel; none if no entry says anything about it. A kernel with a known time
  /// has that one, unless it was measured itself.
  std::optional<Duration> time(const Work& work) const;

 private:
  using Curve = std::vector<std::pair<double, double>>;  ///< logarithms of bytes, ticks; growing

  /// The time of work that was measured itself, aside or not; none if it was not measured.
  std::optional<Duration> measured(const Work& work, bool aside) const;
  Duration scaled_by_factor(Operation operation, Duration time) const;

  std::map<Operation, double> factors_;
  std::unordered_map<Work, Duration, WorkHash> measured_;  ///< by what `measured_as` keeps
  std::map<std::pair<Operation, bool>, Curve> curves_;     ///< whether aside
  Curve all_;                                              ///< of all operations
  std::array<std::optional<CostLaw>, all_dtypes.size()> gemm_;
};

}  // namespace ddpsim
