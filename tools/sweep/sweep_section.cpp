#include "tools/sweep/sweep_section.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tools/report/pages/varied_pictures.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/measured_rows.hpp"

namespace ddpsim {
namespace {

std::vector<VariedFigures> figures_of(const PointResults& results,
                                      const std::optional<Field>& best) {
  std::vector<VariedFigures> figures;
  for (std::size_t point = 0; point < results.size(); ++point)
    for (const TableRow& row : results[point].rows)
      if (auto found = varied_figures(point, figure_columns(), row, best))
        figures.push_back(std::move(*found));
  return figures;
}

/// How far predictions of the point's kind were off; "" where nothing is known of them.
std::string accuracy_at(const Sweep& sweep, std::size_t point) {
  std::vector<Setting> settings = sweep.set;
  for (Setting& setting : sweep.grid.settings(point)) settings.push_back(std::move(setting));
  const Scenario scenario = read_scenario(sweep.file, settings);
  const std::string said = sentences(
      knowledge_of(scenario, price_calibrated(scenario, sweep.laws_only)), scenario.compare);
  return said.empty() ? "" : " " + said;
}

}  // namespace

ReportSection sweep_section(const Sweep& sweep, const PointResults& results,
                            const std::optional<Field>& best, Page tables,
                            const std::vector<std::string>& notes) {
  ReportSection section;
  const std::vector<VariedFigures> figures = figures_of(results, best);
  section.title = fmt::format("{} points of {}", results.size(), sweep.file);
  section.headline = varied_headline(sweep.grid, figures, best);
  section.verdict = varied_verdict(sweep.grid, figures, best);
  if (const auto point = shortest_point(figures)) section.verdict += accuracy_at(sweep, *point);
  const auto refused = std::count_if(results.begin(), results.end(),
                                     [](const PointResult& point) { return !point.error.empty(); });
  if (refused > 0)
    section.verdict += fmt::format("{}{} of {} points are refused; the table says why.",
                                   section.verdict.empty() ? "" : " ", refused, results.size());
  add_varied_pictures(section.page, sweep.grid, figures, best);
  section.add_or_fold("All points in figures", std::move(tables));
  section.add_notes(notes);
  return section;
}

}  // namespace ddpsim
