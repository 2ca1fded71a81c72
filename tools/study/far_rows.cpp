#include "tools/study/far_rows.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "tools/study/fitted_rows.hpp"
#include "tools/study/host_rate.hpp"
#include "tools/study/names.hpp"
#include "tools/study/step_facts.hpp"

namespace ddpsim {
namespace {

bool is_far(Duration measured, Duration predicted, const std::optional<KnownAccuracy>& accuracy) {
  constexpr double odd = 0.1;
  const double factor = in_seconds(measured) / in_seconds(predicted);
  if (std::abs(factor - 1) < odd) return false;
  if (!accuracy) return true;
  return factor < accuracy->band.low || factor > accuracy->band.high;
}

/// Which rows would tell how long computation and communication take, of those not fitted yet.
std::string advice(const Scenario& scenario, const std::vector<FittedRows>& fitted) {
  const auto row_of = [&](Strategy strategy) -> std::optional<MeasuredRow> {
    const auto found = std::ranges::find(fitted, strategy, &FittedRows::strategy);
    if (found == fitted.end()) return std::nullopt;
    return mean_row(*scenario.measured, *found);
  };
  const std::optional<MeasuredRow> naive = row_of(Strategy::naive);
  const bool tells_passes = naive && naive->times.forward && naive->times.backward;
  std::vector<std::string> rows;
  if (!row_of(Strategy::none) && !tells_passes) rows.emplace_back("a row of none (computation)");
  if (!tells_passes && !(naive && naive->communication))
    rows.emplace_back("a naive row with its `communication: TIME`");
  std::string text = rows.empty() ? "are its batch, its buckets and its machine the scenario's?"
                                  : "calibrate on " + enumerated(rows);
  if (host_rates_of(scenario.cluster))
    text += "; what the host's memory moves is assumed (intra_node.carries)";
  return text;
}

}  // namespace

std::vector<std::string> far_row_notes(const Scenario& scenario, const CalibratedModel& priced,
                                       const Knowledge& knowledge,
                                       const std::vector<Strategy>& strategies) {
  if (!scenario.measured || !priced.fit) return {};
  const std::vector<FittedRows> fitted = fitted_rows(scenario, scenario.measured->calibrate_on);
  const StepFacts here = step_facts(scenario);
  std::vector<CalibrationRow> rows = measured_rows(scenario);
  std::string farthest;
  double far = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRow& row = *rows[i].row;
    if (is_fitted(fitted, i) || std::ranges::find(strategies, row.strategy) == strategies.end())
      continue;
    const StepFacts measured = step_facts(scenario_of(row, scenario));
    if (!differences(measured, here, row.strategy != Strategy::none).empty()) continue;
    apply(*priced.fit, rows[i].model.costs);
    const Duration predicted = predict(rows[i].model, rows[i].training).metrics.step;
    const double off = std::abs(std::log(in_seconds(row.step) / in_seconds(predicted)));
    if (off <= far || !is_far(row.step, predicted, knowledge.about(row.strategy))) continue;
    far = off;
    farthest = fmt::format(
        "the file's measured {} row took {:.1f} ms, and {:.1f} ms are predicted "
        "for it: ",
        strategy_label(rows[i].training), in_ms(row.step), in_ms(predicted));
  }
  if (farthest.empty()) return {};
  return {farthest + advice(scenario, fitted)};
}

}  // namespace ddpsim
