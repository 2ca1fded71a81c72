#include "tools/report/pages/varied_section.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/report/pages/varied_pictures.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/vary_report.hpp"

namespace ddpsim {
namespace {

bool same(const std::vector<Setting>& some, const std::vector<Setting>& others) {
  return std::ranges::equal(some, others, [](const Setting& one, const Setting& other) {
    return one.key == other.key && one.value == other.value;
  });
}

/// [run] the point of the grid that it is at. Runs are in the order of the points.
std::vector<std::size_t> points_of(const Variants& variants, const Grid& grid) {
  std::vector<std::size_t> points;
  std::size_t point = 0;
  for (const VariedRun& varied : variants.runs) {
    while (point + 1 < grid.points() && !same(grid.settings(point), varied.settings)) ++point;
    points.push_back(point++);
  }
  return points;
}

}  // namespace

ReportSection varied_section(const Variants& variants, const Grid& grid,
                             const std::optional<Field>& best,
                             const std::vector<std::string>& notes) {
  const std::vector<VariedRun>& runs = variants.runs;
  const std::vector<std::size_t> points = points_of(variants, grid);
  std::vector<VariedFigures> figures;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const Result& result : runs[i].run.results()) {
      const Record row = in_the_long_run(run_row(runs[i].run, result), runs[i].run, result);
      if (auto found = varied_figures(points[i], run_columns(), row_of(run_columns(), row), best))
        figures.push_back(std::move(*found));
    }
  ReportSection section;
  section.title = runs.front().run.scenario.name;
  section.headline = varied_headline(grid, figures, best);
  section.verdict = varied_verdict(grid, figures, best);
  if (const std::string known = varied_accuracy(variants); !known.empty())
    section.verdict += " " + known;
  if (!variants.refused.empty())
    section.verdict += fmt::format(" {} of {} points are refused; the table says why.",
                                   variants.refused.size(), grid.points());
  add_varied_pictures(section.page, grid, figures, best);
  section.add_or_fold("All points in figures", varied_page(variants, best));
  section.add_notes(notes);
  return section;
}

}  // namespace ddpsim
