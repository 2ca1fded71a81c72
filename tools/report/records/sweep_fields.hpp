#pragma once

// The figures of `ddpsim sweep` besides those of `run`, each described once.

#include <array>

#include "tools/report/records/score_fields.hpp"
#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field points = count_field("points", "points", "How many points the grid has.");
inline constexpr Field refusal =
    text_field("error", "error", "Why the scenario refuses the point; nothing if it does not.");
inline constexpr Field computed_from =
    text_field("computed_from", "computed from",
               "A fingerprint of the program, the scenario and every file that the figures follow "
               "from.");
inline constexpr Field row_crc32 = text_field(
    "row_crc32", "crc32",
    "The CRC-32 of the row, as its line of CSV has it before this column: a row that was "
    "damaged is refused when the sweep goes on from the file.");
/// "best bucketed"
inline constexpr Field remark =
    text_field("remark", "", "").with(Look{}.to_the_left()).with(most).only_for(Audience::people);

inline constexpr std::array of_sweep{
    &format,  &version_of_program, &scenario, &points, &notes, &rows,
    &refusal, &computed_from,      &row_crc32};

}  // namespace ddpsim::fields
