#include "tools/sweep/sweep.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/version.hpp"
#include "scenarios/reader/scenario/fingerprint.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_tried = 256;

Scenario scenario_at(const Sweep& sweep, std::size_t point) {
  auto settings = sweep.set;
  for (auto& setting : sweep.grid.settings(point)) settings.push_back(std::move(setting));
  return read_scenario(sweep.file, settings);
}

/// The scenario with one axis at `value` and the others at their first value, or at their last.
Scenario try_value(const Sweep& sweep, std::size_t axis, std::size_t value) {
  std::vector<std::size_t> lowest(sweep.grid.axes().size()), highest;
  for (const Axis& each : sweep.grid.axes()) highest.push_back(each.values.size() - 1);
  lowest[axis] = highest[axis] = value;
  try {
    return scenario_at(sweep, sweep.grid.point_of(lowest));
  } catch (const InputError&) {
    if (lowest != highest) try {
        return scenario_at(sweep, sweep.grid.point_of(highest));
      } catch (const InputError&) {
      }
    throw;
  }
}

/// Each value of `compare` has to be right, for it says which rows there are; of the other keys one
/// value has to be: the point of a wrong one says so in its row.
void try_values(Sweep& sweep) {
  const std::vector<Axis>& axes = sweep.grid.axes();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const bool compares = axes[a].key == "compare";
    const std::size_t values = axes[a].values.size();
    const std::size_t tried = compares ? values : std::min(values, most_tried);
    std::optional<InputError> problem;
    bool one_is_right = false;
    for (std::size_t v = 0; v < tried; ++v) try {
        const Scenario scenario = try_value(sweep, a, v);
        one_is_right = true;
        if (compares || (sweep.compared.empty() && a + 1 == axes.size()))
          sweep.compared.push_back(scenario.compare);
      } catch (const InputError& refused) {
        if (compares) throw;
        if (!problem) problem = refused;
      }
    if (!one_is_right) throw *problem;
  }
}

}  // namespace

Sweep plan_sweep(const std::string& file, const std::vector<Setting>& set, bool laws_only,
                 Grid grid) {
  Sweep sweep{file, set, laws_only, std::move(grid), {}, 0, {}};
  const std::vector<Axis>& axes = sweep.grid.axes();
  check_varied_alone(sweep.grid, set);
  try_values(sweep);

  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  Fingerprint origin;
  origin.add(version);
  origin.add(laws_only ? "laws only" : "calibrated");
  add_file(origin, file);
  add_catalogue(origin);
  for (const auto& [key, value, written] : set) {
    origin.add(key);
    add_setting(origin, folder, value);
  }
  sweep.origin = origin.value();
  for (const Axis& axis : axes) {
    std::vector<std::uint64_t>& origins = sweep.origins.emplace_back();
    for (const std::string& value : axis.values) {
      Fingerprint of_value;
      add_setting(of_value, folder, value);
      origins.push_back(of_value.value());
    }
  }
  return sweep;
}

const std::vector<Strategy>& strategies_of(const Sweep& sweep, std::size_t point) {
  const std::vector<Axis>& axes = sweep.grid.axes();
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (axes[a].key == "compare") return sweep.compared[sweep.grid.indices(point)[a]];
  return sweep.compared.front();
}

std::string computed_from(const Sweep& sweep, std::size_t point) {
  Fingerprint all;
  all.add(fmt::format("{:016x}", sweep.origin));
  const std::vector<std::size_t> indices = sweep.grid.indices(point);
  for (std::size_t a = 0; a < indices.size(); ++a)
    all.add(fmt::format("{:016x}", sweep.origins[a][indices[a]]));
  return fmt::format("{:016x}", all.value());
}

const std::vector<Field>& figure_columns() {
  static const std::vector<Field> columns = [] {
    std::vector<Field> all{fields::strategy};
    for (const Field& field : run_columns())
      if (field.name != fields::strategy.name) all.push_back(field);
    return all;
  }();
  return columns;
}

PointResult compute_point(const Sweep& sweep, std::size_t point) {
  const auto refused = [&](const char* problem) { return PointResult{{}, printable(problem)}; };
  try {
    const Comparison comparison(scenario_at(sweep, point), sweep.laws_only);
    PointResult computed;
    for (const Result& result : comparison.results()) {
      const Record figures = in_the_long_run(run_row(comparison, result), comparison, result);
      TableRow& row = computed.rows.emplace_back(row_of(figure_columns(), figures));
      for (FieldValue& value : row)  // as it will be read again from a CSV file
        if (const std::string* text = value.text())
          value = text->empty() ? FieldValue() : FieldValue(printable(*text, "\n\t"));
    }
    return computed;
  } catch (const InputError& problem) {
    return refused(problem.what());
  } catch (const std::invalid_argument& problem) {  // a law refuses what the scenario asks of it
    return refused(problem.what());
  }
}

}  // namespace ddpsim
