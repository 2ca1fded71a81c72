// Non-negative least squares in two or three unknowns.
//
// Each measurement t is a row (1, flops, bytes) / t that the unknowns x = (constant, 1 /
// arithmetic, 1 / bandwidth) should bring to 1. With so few unknowns there is no need to search:
// the best x >= 0 is the ordinary least-squares solution over the terms in which it is positive, so
// solving every choice of terms (seven at most), leaving out those with a negative solution, and
// keeping the nearest finds it. Terms that cannot be told apart (one point, sizes in proportion)
// make a choice of them rank deficient; it is left out too, and a choice of fewer terms is as near.

#include "model/cost/calibration_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <Eigen/Dense>
#include <fmt/format.h>

namespace ddpsim {
namespace {

struct Point {
  double flops, bytes, seconds;
};

enum Term : std::uint8_t { constant, arithmetic, bandwidth };
using Terms = std::vector<Term>;

/// In order of preference where they are equally near.
const std::array<Terms, 7> gemm_choices{{{arithmetic},
                                         {bandwidth},
                                         {constant},
                                         {arithmetic, bandwidth},
                                         {constant, arithmetic},
                                         {constant, bandwidth},
                                         {constant, arithmetic, bandwidth}}};
const std::array<Terms, 3> streaming_choices{{{bandwidth}, {constant}, {constant, bandwidth}}};

/// How much nearer a law of more terms must be to be preferred, in relative error of each point.
constexpr double indistinguishable = 1e-6;
/// Columns whose directions differ by less cannot be told apart.
constexpr double least_angle = 1e-9;

double amount(const Point& point, Term term) {
  switch (term) {
    case constant:
      return 1;
    case arithmetic:
      return point.flops;
    case bandwidth:
      return point.bytes;
  }
  return 0;
}

/// Least squares for the coefficients of these terms; none unless the points determine them and all
/// are positive.
std::optional<Eigen::VectorXd> solve(const std::vector<Point>& points, const Terms& terms) {
  const auto rows = static_cast<Eigen::Index>(points.size());
  const auto columns = static_cast<Eigen::Index>(terms.size());
  if (rows < columns) return std::nullopt;
  Eigen::MatrixXd matrix(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < columns; ++j) {
      const Point& point = points[static_cast<std::size_t>(i)];
      matrix(i, j) = amount(point, terms[static_cast<std::size_t>(j)]) / point.seconds;
    }
  const Eigen::VectorXd lengths = matrix.colwise().norm();  // flops outweigh ones by 10^9
  if (lengths.minCoeff() <= 0 || !lengths.allFinite()) return std::nullopt;
  matrix = matrix * lengths.cwiseInverse().asDiagonal();
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> decomposition(matrix);
  decomposition.setThreshold(least_angle);
  if (decomposition.rank() < columns) return std::nullopt;
  Eigen::VectorXd solution =
      decomposition.solve(Eigen::VectorXd::Ones(rows)).cwiseQuotient(lengths);
  if (!solution.allFinite() || solution.minCoeff() <= 0) return std::nullopt;
  return solution;
}

double relative_error(const CostLaw& law, const Point& point) {
  const double seconds = in_seconds(law.constant) + point.flops / law.arithmetic.flops_per_second +
                         point.bytes / law.bandwidth.bytes_per_second;
  return std::abs(seconds - point.seconds) / point.seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

std::optional<CostLaw> fit(const std::vector<Point>& points, std::span<const Terms> choices) {
  if (points.empty()) return std::nullopt;
  const auto count = static_cast<double>(points.size());
  std::optional<CostLaw> best;
  double least = std::numeric_limits<double>::infinity();
  for (const Terms& terms : choices) {
    const auto solution = solve(points, terms);
    if (!solution) continue;
    CostLaw law;
    for (std::size_t j = 0; j < terms.size(); ++j) {
      const double value = (*solution)[static_cast<Eigen::Index>(j)];
      if (terms[j] == constant) law.constant = from_seconds(value);
      if (terms[j] == arithmetic) law.arithmetic.flops_per_second = 1 / value;
      if (terms[j] == bandwidth) law.bandwidth.bytes_per_second = 1 / value;
    }
    std::vector<double> errors;
    double squares = 0;
    for (const Point& point : points) {
      errors.push_back(relative_error(law, point));
      squares += errors.back() * errors.back();
    }
    const double worth = best ? count * indistinguishable * indistinguishable : 0;
    if (squares + worth >= least) continue;
    least = squares;
    law.residual = median(std::move(errors));
    law.points = static_cast<int>(points.size());
    best = law;
  }
  return best;
}

/// The points of GEMMs of `type`; without a type, those of tasks that only move memory.
std::vector<Point> points_of(const std::vector<MeasuredWork>& tasks, std::optional<DType> type) {
  std::vector<Point> points;
  const bool others = std::any_of(tasks.begin(), tasks.end(), [](const MeasuredWork& task) {
    return !task.gemm && !may_take_new_memory(task);
  });
  for (const MeasuredWork& task : tasks)
    if (!(others && may_take_new_memory(task)) && task.gemm.has_value() == type.has_value() &&
        (!type || task.type == *type) && task.time.median > Duration::zero())
      points.push_back({task.gemm ? task.gemm->flops() : 0, static_cast<double>(task.traffic.count),
                        in_seconds(task.time.median)});
  return points;
}

/// The rate of a term: `fitted`, or, where the law has no such term, the highest rate of any point.
double rate(double fitted, const std::vector<Point>& points, Term term) {
  if (std::isfinite(fitted)) return fitted;
  double best = 0;
  for (const Point& point : points) best = std::max(best, amount(point, term) / point.seconds);
  return best;
}

}  // namespace

Duration CostLaw::time(double flops, Bytes bytes) const {
  return from_seconds(in_seconds(constant) + flops / arithmetic.flops_per_second +
                      static_cast<double>(bytes.count) / bandwidth.bytes_per_second);
}

std::optional<CostLaw> fit_gemm(const std::vector<MeasuredWork>& tasks, DType type) {
  return fit(points_of(tasks, type), gemm_choices);
}

std::optional<CostLaw> fit_streaming(const std::vector<MeasuredWork>& tasks) {
  return fit(points_of(tasks, std::nullopt), streaming_choices);
}

std::optional<CostLaw> fit_all_reduce(const std::vector<AllReduceCost>& points) {
  std::vector<Point> measured;
  for (const AllReduceCost& point : points)
    if (point.time.median > Duration::zero())
      measured.push_back({0, static_cast<double>(point.size.count), in_seconds(point.time.median)});
  return fit(measured, streaming_choices);
}

std::optional<InterferenceFit> fit_interference(const Calibration& calibration) {
  const auto streaming = fit_streaming(calibration.tasks);
  if (!streaming || !std::isfinite(streaming->bandwidth.bytes_per_second)) return std::nullopt;
  const auto lost = [](double slowdown) { return 1 - 1 / std::max(1.0, slowdown); };
  /// The slope of y over x, through zero.
  struct Slope {
    double xy = 0, xx = 0;
    void add(double x, double y) {
      xy += x * y;
      xx += x * x;
    }
    double value() const { return xx > 0 ? xy / xx : 0; }
  } taken, per_channel, memory;
  InterferenceFit fit;
  const double ring = 2.0 * (calibration.ranks - 1) / calibration.ranks;
  for (const MeasuredInterference& point : calibration.interference) {
    if (!point.memory_slowdown) continue;
    ++fit.points;
    const double arithmetic = lost(point.compute_slowdown);
    if (point.channels > 0)
      per_channel.add(point.channels, arithmetic);
    else
      taken.add(1, arithmetic);
    for (const AllReduceCost& alone : calibration.all_reduce) {
      if (alone.size != point.size || point.channels > 0) continue;
      const double seconds = in_seconds(alone.time.median) * point.communication_slowdown;
      const double bus = ring * static_cast<double>(point.size.count) / seconds;
      memory.add(bus / streaming->bandwidth.bytes_per_second, lost(*point.memory_slowdown));
      fit.bandwidth_lost = lost(point.communication_slowdown);  // of the largest
    }
  }
  if (fit.points == 0) return std::nullopt;
  fit.multiprocessors_taken = taken.value();
  fit.taken_per_channel = per_channel.value();
  fit.memory_per_link_byte = memory.value();
  return fit;
}

CalibratedCluster cluster_of(Calibration calibration) {
  CalibratedCluster cluster;
  Device& device = cluster.device;
  device.name = calibration.cpu.empty() ? "calibrated" : calibration.cpu;
  device.source = fmt::format("calibration of {}, {}", calibration.machine, calibration.date);
  device.synchronous = calibration.synchronous;
  device.peer_to_peer = false;
  device.memory_efficiency = 1;  // the rates are those that kernels reached
  device.gemm_efficiency.fill(1);
  std::vector<Point> moving = points_of(calibration.tasks, std::nullopt);
  std::optional<CostLaw> streaming = fit_streaming(calibration.tasks);
  for (const DType type : all_dtypes)
    if (const auto law = fit_gemm(calibration.tasks, type)) {
      const std::vector<Point> points = points_of(calibration.tasks, type);
      device.peak[static_cast<std::size_t>(type)].flops_per_second =
          rate(law->arithmetic.flops_per_second, points, arithmetic);
      if (!streaming) {
        streaming = law;
        moving = points;
      }
    }
  if (streaming)
    device.memory_bandwidth.bytes_per_second =
        rate(streaming->bandwidth.bytes_per_second, moving, bandwidth);
  cluster.ranks_per_node = calibration.ranks;
  cluster.launch = calibration.launch;
  if (device.synchronous) cluster.launch.kernel = Duration::zero();  // a call, not a launch
  cluster.calibration = std::move(calibration);
  return cluster;
}

}  // namespace ddpsim
