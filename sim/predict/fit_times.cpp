#include "sim/predict/fit_times.hpp"

#include <cmath>
#include <limits>

#include "sim/predict/predict.hpp"

namespace ddpsim {
namespace {

constexpr int most_tries = 60;
constexpr double close_enough = 1e-6;

/// The factor at which a pass takes `measured`. Its time grows with the factor, but not in
/// proportion: what the host has enqueued ahead hides a part, and only the rest shows. So a step in
/// proportion is taken where it stays between the factors known to be too small and too large, and
/// every other step halves that range.
template <typename TimeAt>
double factor_reaching(Duration measured, TimeAt&& time_at) {
  double low = 0, high = std::numeric_limits<double>::infinity(), factor = 1;
  for (int i = 0; i < most_tries; ++i) {
    const Duration now = time_at(factor);
    if (now <= Duration::zero()) break;  // nothing runs in it
    const double ratio = in_seconds(measured) / in_seconds(now);
    if (std::abs(ratio - 1) < close_enough) break;
    (ratio > 1 ? low : high) = factor;
    const double in_proportion = factor * ratio;
    const bool halve = i % 2 == 1 || in_proportion <= low || in_proportion >= high;
    factor = halve && std::isfinite(high) ? 0.5 * (low + high) : in_proportion;
  }
  return factor;
}

}  // namespace

PassFactors fit_times(StepModel& model, const Training& training, const MeasuredTimes& times) {
  const Training alone = training.without_communication();
  const auto planned = std::make_shared<const PlannedStep>(plan_step(model.works, alone));
  PassFactors factors;
  const auto fit = [&](std::optional<Duration> measured, double PassFactors::*pass,
                       Duration StepMetrics::*time) {
    if (!measured) return;
    factors.*pass = factor_reaching(*measured, [&](double factor) {
      PassFactors trial = factors;
      trial.*pass = factor;
      CostModel scaled = model.costs;
      scaled.passes.push_back(trial);
      return predict(scaled, alone, planned).metrics.*time;
    });
  };
  fit(times.forward, &PassFactors::forward, &StepMetrics::forward);
  fit(times.backward, &PassFactors::backward, &StepMetrics::backward);
  fit(times.optimizer, &PassFactors::optimizer, &StepMetrics::optimizer);
  model.costs.passes.push_back(factors);
  return factors;
}

}  // namespace ddpsim
