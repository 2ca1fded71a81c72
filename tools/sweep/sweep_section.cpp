#include "tools/sweep/sweep_section.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "tools/picture/plot.hpp"
#include "tools/report/step_fields.hpp"

namespace ddpsim {
namespace {

/// The step of one strategy at one point.
struct Cell {
  std::size_t point = 0;
  std::string strategy;
  double step = 0;
};

std::vector<Cell> cells_of(const PointResults& results) {
  const Table columns{figure_columns()};
  const std::size_t step = columns.index_of(fields::avg_step_time_ms);
  const std::size_t strategy = columns.index_of(fields::strategy);
  std::vector<Cell> cells;
  for (std::size_t point = 0; point < results.size(); ++point)
    for (const TableRow& row : results[point].rows)
      if (const auto value = row[step].number())
        cells.push_back({point, *row[strategy].text(), *value});
  return cells;
}

std::vector<std::string> strategies_in(const std::vector<Cell>& cells) {
  std::vector<std::string> names;
  for (const Cell& cell : cells)
    if (std::find(names.begin(), names.end(), cell.strategy) == names.end())
      names.push_back(cell.strategy);
  return names;
}

Picture curves_of(const Axis& axis, const std::vector<Cell>& cells) {
  Plot plot;
  plot.title = "Step over " + axis.key;
  plot.description = fmt::format("The step of each strategy at each value of {}.", axis.key);
  plot.x_label = axis.key;
  plot.y_label = "step, ms";
  plot.x_text = [&axis](double at) { return axis.values[static_cast<std::size_t>(at + 0.5)]; };
  for (std::size_t i = 0; i < axis.values.size(); ++i)
    plot.x_ticks.push_back(static_cast<double>(i));
  for (const std::string& name : strategies_in(cells)) {
    Curve curve{name, {}, name == "none", false, {}};
    for (const Cell& cell : cells)
      if (cell.strategy == name)
        curve.points.emplace_back(static_cast<double>(cell.point), cell.step);
    plot.curves.push_back(std::move(curve));
  }
  return {plot.title, plot_picture(plot), "", "Values stand at equal distances."};
}

Picture map_of(const Grid& grid, const std::vector<Cell>& cells, const std::string& strategy) {
  const Axis &down = grid.axes()[0], &across = grid.axes()[1];
  HeatMap map;
  map.title = "Step under " + strategy;
  map.description =
      fmt::format("The step in ms under {}, by {} and {}.", strategy, down.key, across.key);
  map.x_label = across.key;
  map.y_label = down.key;
  map.x = across.values;
  map.y = down.values;
  map.values.assign(
      down.values.size(),
      std::vector<double>(across.values.size(), std::numeric_limits<double>::quiet_NaN()));
  for (const Cell& cell : cells) {
    if (cell.strategy != strategy) continue;
    const std::vector<std::size_t> at = grid.indices(cell.point);
    map.values[at[0]][at[1]] = cell.step;
  }
  return {map.title, heat_picture(map), "",
          "In ms; the darker, the shorter. The shortest is bold; - is a point that was refused."};
}

}  // namespace

ReportSection sweep_section(const Sweep& sweep, const PointResults& results, Page tables) {
  constexpr std::size_t most_values = 40;  // more are no picture any more
  ReportSection section;
  const std::vector<Cell> cells = cells_of(results);
  const auto refused = std::count_if(results.begin(), results.end(),
                                     [](const PointResult& point) { return !point.error.empty(); });
  section.title = fmt::format("{} points of {}", results.size(), sweep.file);
  const Cell* best = nullptr;
  for (const Cell& cell : cells)
    if (cell.strategy != "none" && (best == nullptr || cell.step < best->step)) best = &cell;
  if (best != nullptr)
    section.verdict = fmt::format("The shortest step is {:.2f} ms, under {} at {}.", best->step,
                                  best->strategy, describe_point(sweep.grid, best->point));
  if (refused > 0)
    section.verdict += fmt::format("{}{} of {} points are refused; the table says why.",
                                   section.verdict.empty() ? "" : " ", refused, results.size());
  const std::vector<Axis>& axes = sweep.grid.axes();
  const bool small = std::all_of(
      axes.begin(), axes.end(), [](const Axis& axis) { return axis.values.size() <= most_values; });
  if (small && axes.size() == 1 && !cells.empty()) section.page.add(curves_of(axes[0], cells));
  if (small && axes.size() == 2)
    for (const std::string& strategy : strategies_in(cells))
      section.page.add(map_of(sweep.grid, cells, strategy));
  section.page.add(std::move(tables));
  return section;
}

}  // namespace ddpsim
