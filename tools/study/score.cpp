#include "tools/study/score.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "model/base/statistics.hpp"
#include "scenarios/reader/measured/measured_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/study/carried_fit.hpp"
#include "tools/study/measured_rows.hpp"
#include "tools/study/names.hpp"
#include "tools/study/table_ranks.hpp"

namespace ddpsim {
namespace {

std::string label_of(const CalibrationRow& row) {
  std::string label = strategy_label(row.training);
  for (const auto& [key, value] : row.row->set)
    if (!is_in_label(key, row.training))
      label += fmt::format(", {} {}", key.substr(key.rfind('.') + 1), value);
  return label;
}

/// The time of the collectives alone: measured, or predicted where a timer covered more.
Duration communication_of_row(const MeasuredRow& row, const StepMetrics& predicted) {
  if (row.communication && row.communication->covers.empty()) return row.communication->time;
  return predicted.communication;
}

/// On what the rows are taken to be of, and on tables of links that are scaled for some of them.
void add_notes(const Scenario& scenario, const std::vector<CalibrationRow>& rows,
               const std::vector<FittedRows>& fitted, const std::vector<Setting>& settings,
               std::vector<std::string>& notes) {
  const auto add = [&](std::string note) {
    if (!note.empty()) notes.push_back(std::move(note));
  };
  add(changed_rows_note(rows_changed_by(scenario, settings)));
  add(carried_fit_note(rows_other_than_measured(scenario, fitted, settings)));
  std::map<int, std::set<int>> ranks_by_table;
  for (const CalibrationRow& row : rows)
    if (row.row->strategy != Strategy::none)
      ranks_by_table[row.table_ranks].insert(row.model.costs.ranks);
  for (const auto& [measured, ranks] : ranks_by_table) add(scaled_table_note(measured, ranks));
}

}  // namespace

std::vector<Strategy> fitted_strategies(const std::string& list) {
  std::vector<Strategy> strategies;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    const auto strategy = strategy_named(name);
    if (!strategy)
      throw InputError(fmt::format(
          "--calibrate-on {}: unknown strategy \"{}\"; known: {}", list, name,
          fmt::join(strategy_facts | std::views::transform(&StrategyFacts::name), ", ")));
    if (const std::string why = no_fit_of(*strategy); !why.empty())
      throw InputError(fmt::format("--calibrate-on {}: {}", list, why));
    strategies.push_back(*strategy);
  }
  return strategies;
}

std::optional<FileScore> score_file(const std::string& file, const ScoreSettings& settings) {
  const Scenario scenario = read_scenario(file, settings.set);
  if (!scenario.measured)
    throw InputError(
        fmt::format("{}:1:1: missing key \"measured\": score needs rows such as {{strategy: naive, "
                    "step: 531.7 ms}}",
                    file));
  return score_scenario(file, scenario, settings);
}

std::optional<FileScore> score_scenario(const std::string& file, const Scenario& scenario,
                                        const ScoreSettings& settings) {
  const std::vector<Strategy>& calibrate_on = settings.calibrate_on;
  std::vector<CalibrationRow> all = measured_rows(scenario, settings.set);
  for (const Strategy asked : calibrate_on)
    if (std::none_of(all.begin(), all.end(),
                     [&](const CalibrationRow& row) { return row.row->strategy == asked; }))
      return std::nullopt;
  std::vector<Strategy> fitted =
      calibrate_on.empty() ? scenario.measured->calibrate_on : calibrate_on;
  if (settings.laws_only) fitted.clear();
  const std::vector<FittedRows> chosen = fitted_rows(scenario, fitted, settings.set);
  FileScore score{file, scenario.name, fit_chosen(scenario, all, fitted, settings.set), {}};
  add_notes(scenario, all, chosen, settings.set, score.fit.notes);

  // Exposed communication is judged by the naive communication: as measured, else as predicted.
  std::optional<Duration> naive_communication;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CalibrationRow& row = all[i];
    apply(score.fit, row.model.costs);
    const StepMetrics metrics = predict(row.model, row.training).metrics;
    if (row.training.strategy == Strategy::naive && !naive_communication)
      naive_communication = communication_of_row(*row.row, metrics);
    const bool capped = row.training.strategy == Strategy::bucketed;
    score.rows.push_back({file, label_of(row), row.model.costs.ranks, row.link, row.device,
                          row.compute, row.training.strategy,
                          capped ? row.training.bucket_cap : Bytes{}, row.row->step, metrics.step,
                          is_fitted(chosen, i), -1, row.row->note});
  }
  if (naive_communication)
    for (ScoreRow& row : score.rows)
      row.exposed_error =
          std::abs(in_seconds(row.predicted - row.measured)) / in_seconds(*naive_communication);
  return score;
}

namespace {

template <typename Wanted>
ScoreSummary summary_of(const std::vector<FileScore>& files, const Wanted& wanted) {
  std::vector<double> errors, exposed_errors;
  double sum = 0;
  for (const FileScore& file : files) {
    for (const ScoreRow& row : file.rows) {
      if (row.calibration || !wanted(row)) continue;
      errors.push_back(std::abs(row.error()));
      sum += row.error();
      if (row.exposed_error >= 0) exposed_errors.push_back(row.exposed_error);
    }
  }
  const double bias = errors.empty() ? 0 : sum / static_cast<double>(errors.size());
  return {errors.size(),
          quantile(errors, 0.5),
          quantile(errors, 0.9),
          quantile(errors, 1.0),
          bias,
          exposed_errors.empty() ? std::nullopt : std::optional(quantile(exposed_errors, 0.5))};
}

}  // namespace

ScoreSummary summarise(const std::vector<FileScore>& files) {
  return summary_of(files, [](const ScoreRow&) { return true; });
}

std::vector<ScoreGroup> group(const std::vector<FileScore>& files) {
  std::set<int> ranks;
  std::set<std::string> links;
  for (const FileScore& file : files)
    for (const ScoreRow& row : file.rows)
      if (!row.calibration) {
        ranks.insert(row.ranks);
        if (!row.link.empty()) links.insert(row.link);
      }
  std::vector<ScoreGroup> groups;
  for (const int count : ranks)
    groups.push_back({fmt::format("{} rank{}", count, count == 1 ? "" : "s"),
                      summary_of(files, [&](const ScoreRow& row) { return row.ranks == count; })});
  for (const std::string& link : links)
    groups.push_back(
        {link, summary_of(files, [&](const ScoreRow& row) { return row.link == link; })});
  return groups;
}

}  // namespace ddpsim
