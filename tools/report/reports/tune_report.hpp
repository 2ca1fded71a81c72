#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/tune/tune.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {

/// What `ddpsim tune` prints: the choices beside each other, the step against the cap, what errors
/// do to it, a verdict, what to paste. The verdict says where a saving is smaller than how far the
/// steps may be off.
Page tune_page(const Scenario& scenario, const Tuning& tuning, const TuneOptions& options,
               const Knowledge& knowledge);

/// The sentences that go before everything else where the step with the recommended buckets takes
/// more memory than the device has; "" where it fits, or where that is not known.
std::string unfit_before_verdict(const Scenario& scenario, const Tuning& tuning);

/// The sentence that goes before a verdict where it rests on what nobody measured; "" where it does
/// not.
std::string assumed_before_verdict(const Scenario& scenario, const Knowledge& knowledge);

/// Caps from `low` to `high` make the same buckets: the one that people would write, such as
/// "80 MiB"; "none" where there is no cap.
std::string cap_text(Bytes low, Bytes high);

/// A line if the step with the recommended buckets takes more memory than the device has.
std::vector<std::string> tune_warnings(const Scenario& scenario, const Tuning& tuning);

/// "ddpsim.tune/1"; times in ms, sizes in bytes. The band is of the recommended step. `notes`: what
/// is said beside it (said_notes.hpp).
Record tune_record(const Scenario& scenario, const Tuning& tuning, const Knowledge& knowledge,
                   const std::vector<std::string>& notes);

/// Every distinct cap with its step.
Table caps_table(const Tuning& tuning);

}  // namespace ddpsim
