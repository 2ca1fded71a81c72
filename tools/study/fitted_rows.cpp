#include "tools/study/fitted_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_text.hpp"
#include "sim/predict/fit.hpp"
#include "tools/study/step_facts.hpp"

namespace ddpsim {
namespace {

std::vector<std::size_t> rows_of(const Measured& measured, Strategy strategy) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < measured.rows.size(); ++i)
    if (measured.rows[i].strategy == strategy) rows.push_back(i);
  return rows;
}

std::vector<Setting> own_settings(const MeasuredRow& row) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : row.set) settings.emplace_back(key, value);
  return settings;
}

/// The scenario of a row, as it is written: two rows of one text have the same settings.
std::string written(const Scenario& scenario, const MeasuredRow& row) {
  std::vector<Setting> settings = own_settings(row);
  std::ranges::sort(settings, {}, &Setting::key);
  return scenario_text(scenario.file, settings);
}

/// The nearest to the scenario among several rows of a strategy, and its repeats; in file order.
/// None of them has a use: empty.
std::vector<std::size_t> nearest_rows(const Scenario& scenario,
                                      const std::vector<std::size_t>& rows, bool beside_none,
                                      const std::vector<Setting>& settings) {
  const StepFacts here = step_facts(scenario);
  const std::string file = scenario_text(scenario.file, {});
  using Distance = std::tuple<std::size_t, std::size_t, bool>;
  std::optional<Distance> least;
  std::string chosen;
  for (const std::size_t i : rows) {
    const MeasuredRow& row = scenario.measured->rows[i];
    if (!has_use(row, beside_none)) continue;
    const StepFacts measured = step_facts(scenario_of(row, scenario, settings));
    const bool communicates = row.strategy != Strategy::none && measured.communicates;
    const std::string text = written(scenario, row);
    const Distance distance{differences(measured, here, communicates).size(),
                            text == file ? 0 : row.set.size(), !row.communication};
    if (least && *least <= distance) continue;
    least = distance;
    chosen = text;
  }
  std::vector<std::size_t> repeats;
  for (const std::size_t i : rows)
    if (least && written(scenario, scenario.measured->rows[i]) == chosen) repeats.push_back(i);
  return repeats;
}

/// The mean of what a member says, over the rows that say it.
template <typename Said>
std::optional<Duration> mean_of(const std::vector<const MeasuredRow*>& rows, const Said& said) {
  Duration sum{};
  std::int64_t count = 0;
  for (const MeasuredRow* row : rows)
    if (const std::optional<Duration> time = said(*row)) {
      sum += *time;
      ++count;
    }
  if (count == 0) return std::nullopt;
  return sum / count;
}

}  // namespace

Scenario scenario_of(const MeasuredRow& row, const Scenario& scenario,
                     std::vector<Setting> settings) {
  for (Setting& own : own_settings(row)) settings.push_back(std::move(own));
  try {
    return read_scenario(scenario.file, settings);
  } catch (const InputError& problem) {
    throw InputError(fmt::format("{}: measured row: {}", row.place, problem.what()));
  }
}

std::vector<FittedRows> fitted_rows(const Scenario& scenario,
                                    const std::vector<Strategy>& strategies,
                                    const std::vector<Setting>& settings) {
  const Measured& measured = *scenario.measured;
  const bool beside_none = std::ranges::find(strategies, Strategy::none) != strategies.end() &&
                           !rows_of(measured, Strategy::none).empty();
  std::vector<FittedRows> fitted;
  for (const Strategy strategy : strategies) {
    if (std::ranges::find(fitted, strategy, &FittedRows::strategy) != fitted.end()) continue;
    std::vector<std::size_t> rows = rows_of(measured, strategy);
    if (rows.size() > 1)
      rows = nearest_rows(scenario, rows, beside_none, settings);
    else if (!rows.empty() && !has_use(measured.rows[rows.front()], beside_none))
      rows.clear();
    if (!rows.empty()) fitted.push_back({strategy, std::move(rows)});
  }
  return fitted;
}

bool is_fitted(const std::vector<FittedRows>& fitted, std::size_t row) {
  return std::ranges::any_of(fitted, [&](const FittedRows& each) {
    return std::ranges::find(each.rows, row) != each.rows.end();
  });
}

MeasuredRow mean_row(const Measured& measured, const FittedRows& fitted) {
  std::vector<const MeasuredRow*> rows;
  for (const std::size_t i : fitted.rows) rows.push_back(&measured.rows[i]);
  MeasuredRow mean = *rows.front();
  for (const MeasuredRow* row : rows)
    if (!mean.communication) mean.communication = row->communication;
  mean.step = *mean_of(rows, [](const MeasuredRow& row) { return std::optional(row.step); });
  const auto mean_time = [&](auto member) {
    return mean_of(rows, [&](const MeasuredRow& row) { return row.times.*member; });
  };
  mean.times = {mean_time(&MeasuredTimes::forward), mean_time(&MeasuredTimes::backward),
                mean_time(&MeasuredTimes::optimizer)};
  if (mean.communication)
    mean.communication->time = *mean_of(rows, [&](const MeasuredRow& row) {
      const auto& timer = row.communication;
      const bool alike = timer && timer->covers == mean.communication->covers;
      return alike ? std::optional(timer->time) : std::nullopt;
    });
  return mean;
}

}  // namespace ddpsim
