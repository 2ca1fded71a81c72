#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/parallel/training.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {

/// A scenario and the grid of settings it is predicted at.
struct Sweep {
  std::string file;
  std::vector<Setting> set;  ///< the same at every point
  bool laws_only = false;
  Grid grid;
  /// [value of the axis "compare", or 0 if there is none] the strategies of a point, in order.
  std::vector<std::vector<Strategy>> compared;
  std::uint64_t origin = 0;  ///< fingerprint of the program's version, the scenario, its files
  std::vector<std::vector<std::uint64_t>> origins;  ///< [axis][value] the same of each value
};

/// Reads the scenario at the values of every axis in turn (the first 256 of a longer one), the
/// other axes at their first value, or at their last. Throws InputError for what neither takes: a
/// wrong value is told before anything is computed. Combinations are not tried.
Sweep plan_sweep(const std::string& file, const std::vector<Setting>& set, bool laws_only,
                 Grid grid);

const std::vector<Strategy>& strategies_of(const Sweep& sweep, std::size_t point);

/// What the figures of a point follow from, in 16 hexadecimal digits: the program's version, the
/// contents of the scenario, the catalogue and every file they and the settings name.
std::string computed_from(const Sweep& sweep, std::size_t point);

/// What a point has come to.
struct PointResult {
  std::vector<TableRow> rows;  ///< for each of its strategies, in order, values of figure_columns()
  std::string error;  ///< why the scenario refuses it, which then has no rows; "" if it does not

  /// Has it been computed at all?
  bool known() const { return !rows.empty() || !error.empty(); }
};

/// The columns of `run --csv`, with the strategy first.
const std::vector<Field>& figure_columns();

/// Predicts one point. Throws for failures that are not the input's.
PointResult compute_point(const Sweep& sweep, std::size_t point);

}  // namespace ddpsim
