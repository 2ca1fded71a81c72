#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "tools/study/fitted_rows.hpp"

namespace ddpsim {

/// Something that measured rows are of, and that is another in the scenario they are fitted to.
struct OtherThanMeasured {
  std::string what;      ///< "device", "batch"
  std::string measured;  ///< "h100-sxm"
  std::string here;      ///< "a100-80"
};

/// In what a scenario differs from what the rows fitted to it were measured of: its file as it is
/// without settings, with the keys that a row sets itself. Compared are the device, the model,
/// number formats, batch, sequence, optimizer and the work of a step; and, for rows that
/// communicate, ranks and the link that decides. Empty: in nothing, or there are no such rows.
/// Throws InputError where a row's keys do not go with the file.
std::vector<OtherThanMeasured> other_than_measured(const Scenario& scenario);

/// In what the scenarios of all its measured rows differ, which are predicted from the fitted ones.
/// Each row, also a fitted one, is read with `settings` and with its own keys.
std::vector<OtherThanMeasured> rows_other_than_measured(const Scenario& scenario,
                                                        const std::vector<FittedRows>& fitted,
                                                        const std::vector<Setting>& settings);

/// As above, for what `settings` make of the file's rows: `measured` is of the file as it stands.
/// Empty also where the file by itself is no scenario.
std::vector<OtherThanMeasured> rows_changed_by(const Scenario& scenario,
                                               const std::vector<Setting>& settings);

/// The ranks that the first of the fitted rows was measured on; the scenario's own where no row is
/// fitted. Throws likewise.
int measured_ranks(const Scenario& scenario);

/// Did the all-reduces of the overlap row that the strength of interference is fitted to go over
/// NICs? False where no such row is fitted. Throws likewise.
bool fits_interference_over_nics(const Scenario& scenario);

/// "the measured rows are of device h100-sxm (here a100-80): what is fitted to them may not hold
/// here, ...": one sentence; "" where nothing differs.
std::string carried_fit_note(const std::vector<OtherThanMeasured>& others);
/// "the rows are taken as measured with link mine (the file says ib-ndr): ..."; "" likewise.
std::string changed_rows_note(const std::vector<OtherThanMeasured>& others);
/// carried_fit_note for a point of a grid: without the point's own values, so that points which
/// differ in the same things have the same sentence.
std::string carried_fit_note_at_point(const std::vector<OtherThanMeasured>& others);

}  // namespace ddpsim
