#include "model/cost/calibrated_times.hpp"

#include <algorithm>
#include <cmath>

namespace ddpsim {
namespace {

using Curve = std::vector<std::pair<double, double>>;

void add(Curve& curve, const MeasuredWork& task) {
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

/// What decides whether two pieces of work are the same to a calibration.
Work key_of(const Work& work, bool aside) {
  Work key;
  key.operation = work.operation;
  key.gemm = work.gemm;
  key.traffic = work.traffic;
  key.type = work.type;
  key.aside = aside;
  return key;
}

}  // namespace

CalibratedTimes::CalibratedTimes(const Calibration& calibration) {
  for (const OperationFactor& factor : calibration.factors)
    factors_.emplace(factor.operation, factor.over_medians);
  for (const MeasuredWork& task : calibration.tasks) {
    measured_.emplace(key_of(task, task.aside), task.time.median);
    if (task.gemm) continue;
    add(curves_[{task.operation, task.aside}], task);
    if (!may_take_new_memory(task)) add(all_, task);
  }
  for (auto& [place, curve] : curves_) curve = merged(std::move(curve));
  if (all_.empty())
    for (const MeasuredWork& task : calibration.tasks)
      if (!task.gemm) add(all_, task);
  all_ = merged(std::move(all_));
  for (const DType type : all_dtypes)
    gemm_[static_cast<std::size_t>(type)] = fit_gemm(calibration.tasks, type);
}

std::optional<Duration> CalibratedTimes::measured(const Work& work, bool aside) const {
  if (!work.gemm && work.traffic.count == 0) return std::nullopt;
  const auto found = measured_.find(key_of(work, aside));
  if (found == measured_.end()) return std::nullopt;
  return scaled_by_factor(work.operation, found->second);
}

std::optional<Duration> CalibratedTimes::time(const Work& work) const {
  for (const bool place : {work.aside, !work.aside})
    if (const auto found = measured(work, place)) return found;
  if (work.known_time) return work.known_time;
  if (work.gemm) {
    const auto& law = gemm_[static_cast<std::size_t>(work.type)];
    if (!law) return std::nullopt;
    return scaled_by_factor(work.operation, law->time(work.gemm->flops(), work.traffic));
  }
  for (const bool place : {work.aside, !work.aside}) {
    const auto own = curves_.find({work.operation, place});
    if (own != curves_.end() && !own->second.empty())
      return scaled_by_factor(work.operation, at(own->second, work.traffic));
  }
  if (all_.empty()) return std::nullopt;
  return scaled_by_factor(work.operation, at(all_, work.traffic));
}

Duration CalibratedTimes::scaled_by_factor(Operation operation, Duration time) const {
  const auto factor = factors_.find(operation);
  return factor == factors_.end() ? time : scaled(time, factor->second);
}

}  // namespace ddpsim
