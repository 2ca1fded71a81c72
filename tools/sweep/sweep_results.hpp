#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/sweep/sweep.hpp"

namespace ddpsim {

/// [point] what it has come to, or nothing yet.
using PointResults = std::vector<PointResult>;

/// The columns of a sweep's files: the keys it varies, figure_columns(), and three that tell a
/// row's error, what it was computed from, and its checksum. They refer to the keys of `sweep`.
std::vector<Field> sweep_columns(const Sweep& sweep);

/// The checksum of a row of sweep_columns(), whose last column is not looked at: zlib's crc32 of
/// the row's line of CSV before that column, in 8 hexadecimal digits. A file that is read again has
/// the same, whether CSV or JSON.
std::string checksum_of(const std::vector<Field>& columns, const TableRow& row);

// How a finished sweep's file becomes the same whoever computes which point when: rows stand in the
// order of the grid, and a value that was read is written as it was.

/// A line per point and strategy; one line with an error for a point the scenario refuses.
std::string sweep_csv(const Sweep& sweep, const PointResults& results);

/// "ddpsim.sweep/1": the same under the same names in "rows", what a row leaves empty as null,
/// behind `notes` (sweep_notes.hpp). What goes on from the file reads its rows alone.
std::string sweep_json(const Sweep& sweep, const PointResults& results,
                       const std::vector<std::string>& notes);

/// A line that says that points do not fit their device's memory; empty if all fit. If no step
/// fits, further lines say what would (memory_advice.hpp).
std::vector<std::string> memory_notes(const Sweep& sweep, const PointResults& results);

/// What ranks_notes (point_notes.hpp) says of the points that are known.
std::vector<std::string> ranks_notes_of(const Sweep& sweep, const PointResults& results);

/// Why no row is the best by the figure: why_no_best (best.hpp) of the points' prices.
std::string why_none_is_best(const Sweep& sweep, const PointResults& results, const Field& best);

/// What unpriced_notes (best.hpp) says of the points that are known.
std::vector<std::string> unpriced_notes(const Sweep& sweep, const PointResults& results,
                                        const Field& best);

/// For people: the rows with each strategy's shortest step marked; of a large grid only those.
/// `best`: the rows sorted by it, and of a large grid the first; marked is where it is the best.
/// Where none is (why_none_is_best) rows keep their order, and none is marked.
Page sweep_page(const Sweep& sweep, const PointResults& results,
                const std::optional<Field>& best = {});

}  // namespace ddpsim
