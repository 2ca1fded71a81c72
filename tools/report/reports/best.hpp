#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/report/records/record.hpp"

namespace ddpsim {

/// The figure of a result that `--best` names: a numeric column of run_columns() of which low or
/// high values are better, by its name with or without its unit ("step", "exposed_ms", "mfu").
/// Throws InputError, which lists them.
const Field& best_field(const std::string& name);

/// Does `a` go before `b`? What has no value goes last.
bool goes_before(const Field& field, const FieldValue& a, const FieldValue& b);

/// Why rows cannot be ordered by the figure: it is a cost, and the prices are in several
/// currencies, which nothing converts. "": they can.
std::string why_no_best(const Field& field, const std::set<std::string>& currencies);

/// "sorted by mfu, the highest first".
std::string sorted_text(const Field& field);

}  // namespace ddpsim
