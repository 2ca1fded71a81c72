#pragma once

#include <string>

#include "tools/sweep/sweep_results.hpp"

namespace ddpsim {

/// The points an earlier run of the same sweep wrote into `path`. A point that is not there whole
/// is left out; no such file, an empty one and what is no plain file hold none. Throws InputError
/// for a file that is no result of this sweep: other keys, points outside of the grid, figures of
/// another scenario.
PointResults read_sweep_csv(const Sweep& sweep, const std::string& path);
/// The same of a text, which errors call `name`.
PointResults sweep_csv_points(const Sweep& sweep, const std::string& text, const std::string& name);
PointResults read_sweep_json(const Sweep& sweep, const std::string& path);

}  // namespace ddpsim
