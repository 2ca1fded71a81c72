#pragma once

#include <string>

#include "tools/sweep/sweep_results.hpp"

namespace ddpsim {

/// What a file holds of a sweep.
struct KnownPoints {
  PointResults results;
  std::string note;  ///< what the user should know of the file; "": nothing
};

/// The points an earlier run of the same sweep wrote into `path`. A point that is not there whole
/// is left out; no such file, an empty one and what is no plain file hold none. Throws InputError
/// for a file that is no result of this sweep (other keys, points outside of the grid, figures of
/// another scenario), and for a row whose checksum does not hold. Rows without one, of an earlier
/// release, are taken with a note, and so are lines that begin with #, which are read over.
KnownPoints read_sweep_csv(const Sweep& sweep, const std::string& path);
/// The points in a text of CSV, which errors call `name`.
KnownPoints sweep_csv_points(const Sweep& sweep, const std::string& text, const std::string& name);
KnownPoints read_sweep_json(const Sweep& sweep, const std::string& path);

}  // namespace ddpsim
