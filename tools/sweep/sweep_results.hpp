#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/sweep/sweep.hpp"

namespace ddpsim {

/// [point] the lines compute_point() made; empty: not computed yet.
using PointRows = std::vector<std::string>;

/// How a finished sweep's file becomes the same whoever computes which point when: rows stand in the
/// order of the grid, and a row that was read is written as it was.
///
/// CSV: sweep_columns(), a line per point and strategy. JSON, "ddpsim.sweep/1": the same under the
/// same names in "rows", numbers as numbers and what a row leaves empty as null.
std::string sweep_csv(const Sweep& sweep, const PointRows& rows);
std::string sweep_json(const Sweep& sweep, const PointRows& rows);

/// For people: the rows with each strategy's shortest step marked; of a large grid only those.
std::string sweep_table(const Sweep& sweep, const PointRows& rows);

/// The points an earlier run of the same sweep wrote into `path`. A point that is not there whole is
/// left out; no such file, an empty one and what is no plain file hold none. Throws InputError for a file that
/// is no result of this sweep: other keys, points outside of the grid, figures of another scenario.
PointRows read_sweep_csv(const Sweep& sweep, const std::string& path);
PointRows read_sweep_json(const Sweep& sweep, const std::string& path);

/// A point the scenario refuses, and why; "" if it does not.
std::string error_of(const Sweep& sweep, const std::string& rows);

}  // namespace ddpsim
