#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/timeline/units.hpp"
#include "sim/predict/step.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// Does the step gather or reduce-scatter parts, so that its groups are told as units?
bool has_units(const Step& step);
/// "bucket", "unit", or "bucket or unit": what the groups of these steps are for people.
std::string word_for_groups(const std::vector<NamedStep>& steps);

/// The collectives of a step's units, of its typical rank.
std::vector<UnitCollective> unit_collectives(const Step& step);

/// One object for each unit, with its collectives. `why`: with what held each up, and what exposes
/// it.
List unit_records(const Scenario& scenario, const Step& step, bool why);

/// A row for each unit: when its collectives run, and how much of them is exposed.
Table units_table(const Scenario& scenario, const Step& step);

/// A row for each unit, the most exposed first: how much of each collective is exposed by what, and
/// what those that are hidden waited for.
Table exposed_units_table(const Step& step);
/// What the words in it mean; `alone`: no bucket is told beside units.
std::string exposed_units_text(bool alone);

/// What brings updated parameters behind the optimizer, of a step without units that shards; none:
/// nothing does.
std::optional<UnitCollective> sent_behind_update(const Step& step);
/// "zero1: 291 broadcasts of updated parameters, one after the other, behind the update, 5.8 GiB:
/// 94.183: itself 94.100, launch 0.083"
std::string behind_update_text(const std::string& label, const Step& step,
                               const UnitCollective& sent);
Record behind_update_record(const Step& step, const UnitCollective& sent);

/// A unit's collectives as one for each unit: its exposed time and causes together.
std::vector<ExposedBucket> exposed_units(const Step& step);

}  // namespace ddpsim
