#include "model/cost/calibrated_times.hpp"

#include <algorithm>
#include <cmath>

namespace ddpsim {
namespace {

using Curve = std::vector<std::pair<double, double>>;

void add(Curve& curve, const TaskCost& task) {
  if (task.traffic.count > 0 && task.time.median > Duration::zero())
    curve.emplace_back(std::log(static_cast<double>(task.traffic.count)),
                       std::log(static_cast<double>(task.time.median.count())));
}

/// In order of traffic, each once.
Curve merged(Curve points) {
  std::sort(points.begin(), points.end());
  Curve curve;
  for (std::size_t i = 0; i < points.size();) {
    const double x = points[i].first;
    double sum = 0;
    int count = 0;
    for (; i < points.size() && points[i].first == x; ++i, ++count) sum += points[i].second;
    curve.emplace_back(x, sum / count);
  }
  return curve;
}

Duration at(const Curve& curve, Bytes traffic) {
  if (traffic.count <= 0) return {};
  const double x = std::log(static_cast<double>(traffic.count));
  const auto [first, low] = curve.front();
  const auto [last, high] = curve.back();
  double y = 0;
  if (curve.size() == 1) {
    y = low + (x - first);
  } else if (x <= first || x >= last) {
    const bool below = x <= first;
    const auto& [x0, y0] = curve[below ? 0 : curve.size() - 2];
    const auto& [x1, y1] = curve[below ? 1 : curve.size() - 1];
    const double slope = std::clamp((y1 - y0) / (x1 - x0), 0.0, 1.0);
    y = below ? low + slope * (x - first) : high + slope * (x - last);
  } else {
    const auto right = std::upper_bound(
        curve.begin(), curve.end(), x, [](double value, const auto& p) { return value < p.first; });
    const auto& [x0, y0] = *(right - 1);
    const auto& [x1, y1] = *right;
    y = y0 + (x - x0) * (y1 - y0) / (x1 - x0);
  }
  return from_ticks(std::exp(y));
}

}  // namespace

CalibratedTimes::CalibratedTimes(const Calibration& calibration) {
  for (const OperationFactor& factor : calibration.factors)
    factors_.emplace(factor.operation, factor.over_medians);
  for (const TaskCost& task : calibration.tasks) {
    measured_.emplace(Key{task.operation, task.gemm, task.traffic, task.type, task.aside},
                      task.time.median);
    if (task.gemm) continue;
    add(curves_[{task.operation, task.aside}], task);
    add(all_, task);
  }
  for (auto& [place, curve] : curves_) curve = merged(std::move(curve));
  all_ = merged(std::move(all_));
  for (const DType type : all_dtypes)
    gemm_[static_cast<std::size_t>(type)] = fit_gemm(calibration.tasks, type);
}

std::optional<Duration> CalibratedTimes::measured(Operation operation, const Kernel& kernel,
                                                  bool aside) const {
  const auto found =
      measured_.find(Key{operation, kernel.gemm, kernel.traffic, kernel.type, aside});
  if (found == measured_.end() || (!kernel.gemm && kernel.traffic.count == 0)) return std::nullopt;
  return scaled_by_factor(operation, found->second);
}

std::optional<Duration> CalibratedTimes::time(Operation operation, const Kernel& kernel,
                                              bool aside) const {
  for (const bool place : {aside, !aside})
    if (const auto found = measured(operation, kernel, place)) return found;
  if (kernel.time) return kernel.time;
  if (kernel.gemm) {
    const auto& law = gemm_[static_cast<std::size_t>(kernel.type)];
    if (!law) return std::nullopt;
    return scaled_by_factor(operation, law->time(kernel.gemm->flops(), kernel.traffic));
  }
  for (const bool place : {aside, !aside}) {
    const auto own = curves_.find({operation, place});
    if (own != curves_.end() && !own->second.empty())
      return scaled_by_factor(operation, at(own->second, kernel.traffic));
  }
  if (all_.empty()) return std::nullopt;
  return scaled_by_factor(operation, at(all_, kernel.traffic));
}

Duration CalibratedTimes::scaled_by_factor(Operation operation, Duration time) const {
  const auto factor = factors_.find(operation);
  return factor == factors_.end() ? time : scaled(time, factor->second);
}

}  // namespace ddpsim
