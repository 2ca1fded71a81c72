#include "tools/study/score.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/reader/scenario_reader.hpp"
#include "tools/study/measured_rows.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

std::string label_of(const CalibrationRow& row) {
  std::string label = strategy_label(row.training);
  for (const auto& [key, value] : row.row->set)
    label += fmt::format(", {} {}", key.substr(key.rfind('.') + 1), value);
  return label;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

}  // namespace

std::optional<FileScore> score_file(const std::string& file,
                                    const std::vector<Strategy>& calibrate_on) {
  const Scenario scenario = read_scenario(file);
  if (!scenario.measured)
    throw InputError(
        fmt::format("{}:1:1: missing key \"measured\": score needs rows such as {{strategy: naive, "
                    "step: 531.7 ms}}",
                    file));
  std::vector<CalibrationRow> all = measured_rows(scenario);
  for (const Strategy asked : calibrate_on)
    if (std::none_of(all.begin(), all.end(),
                     [&](const CalibrationRow& row) { return row.row->strategy == asked; }))
      return std::nullopt;
  const std::vector<bool> calibrates =
      calibrating(all, calibrate_on.empty() ? scenario.measured->calibrate_on : calibrate_on);
  FileScore score{file, scenario.name, fit_chosen(all, calibrates), {}};

  // Exposed communication is judged by the naive communication: as measured, else as predicted.
  std::optional<Duration> naive_communication;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CalibrationRow& row = all[i];
    apply(score.fit, row.model.costs);
    const StepMetrics metrics = predict(row.model, row.training).metrics;
    if (row.training.strategy == Strategy::naive && !naive_communication)
      naive_communication = row.row->communication.value_or(metrics.communication);
    const bool capped = row.training.strategy == Strategy::bucketed;
    score.rows.push_back({file, label_of(row), row.training.strategy,
                          capped ? row.training.bucket_cap : Bytes{}, row.row->step, metrics.step,
                          calibrates[i], -1, row.row->note});
  }
  if (naive_communication)
    for (ScoreRow& row : score.rows)
      row.exposed_error =
          std::abs(in_seconds(row.predicted - row.measured)) / in_seconds(*naive_communication);
  return score;
}

ScoreSummary summarise(const std::vector<FileScore>& files) {
  std::vector<double> errors, exposed_errors;
  for (const FileScore& file : files) {
    for (const ScoreRow& row : file.rows) {
      if (row.calibration) continue;
      errors.push_back(std::abs(row.error()));
      if (row.exposed_error >= 0) exposed_errors.push_back(row.exposed_error);
    }
  }
  return {errors.size(), quantile(errors, 0.5), quantile(errors, 0.9), quantile(errors, 1.0),
          quantile(exposed_errors, 0.5)};
}

}  // namespace ddpsim
