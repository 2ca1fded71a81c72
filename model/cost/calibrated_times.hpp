#pragma once

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "model/cost/calibration_fit.hpp"

namespace ddpsim {

/// Times of kernels and copies on a machine that was measured.
///
///     measured itself (same operation, GEMM, traffic and type)    its median
///     a GEMM that was not                                         the law fitted to GEMMs of its type
///     what only moves memory                                      between entries of its operation,
///                                                                 or, if it has none, of any
///
/// of those aside for what runs aside and of the others for the rest, or, where those do not have it, the
/// others; each times the calibration's factor of that operation. Between two entries logarithms of traffic and time are interpolated; beyond the ends their slope
/// goes on, kept within 0 (more traffic never takes less time) and 1 (nor more than in proportion);
/// one entry gives time in proportion to traffic. Entries of equal traffic count as one, at the
/// geometric mean of their times.
class CalibratedTimes {
 public:
  explicit CalibratedTimes(const Calibration& calibration);

  /// Of a kernel that was measured itself, in that place.
  std::optional<Duration> measured(Operation operation, const Kernel& kernel,
                                   bool aside = false) const;

  /// Of any kernel; nothing if no entry says anything about it. A kernel with a `time` of its own has
  /// that, unless it was measured itself.
  std::optional<Duration> time(Operation operation, const Kernel& kernel, bool aside = false) const;

 private:
  using Key = std::tuple<Operation, std::optional<Gemm>, Bytes, DType, bool>;
  using Curve = std::vector<std::pair<double, double>>;  ///< logarithms of bytes, ticks; growing

  Duration scaled_by_factor(Operation operation, Duration time) const;

  std::map<Operation, double> factors_;
  std::map<Key, Duration> measured_;
  std::map<std::pair<Operation, bool>, Curve> curves_;  ///< whether aside
  Curve all_;                                           ///< of all operations
  std::array<std::optional<CostLaw>, all_dtypes.size()> gemm_;
};

}  // namespace ddpsim
