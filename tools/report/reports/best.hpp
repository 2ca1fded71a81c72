#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/text/settings.hpp"
#include "tools/report/records/record.hpp"

namespace ddpsim {

/// The figure of a result that `--best` names: a numeric column of run_columns() of which low or
/// high values are better, by its name with or without its unit ("step", "exposed_ms", "mfu").
/// Throws InputError, which lists them.
const Field& best_field(const std::string& name);

/// Does `a` go before `b`? What has no value goes last.
bool goes_before(const Field& field, const FieldValue& a, const FieldValue& b);

/// What the costs of a point of a grid are in.
struct PricedPoint {
  std::vector<Setting> settings;
  std::string currency;  ///< "": its cluster has no price
};

/// Why rows cannot be ordered by the figure: it is a cost, and no point has a price, or prices are
/// in several currencies, which nothing converts. "": they can.
std::string why_no_best(const Field& field, const std::vector<PricedPoint>& points);

/// The clusters without a price, where the figure is a cost and others have one: "cluster: dgx-a100
/// and cluster: dgx-h100". "": there are none.
std::string unpriced_clusters(const Field& field, const std::vector<PricedPoint>& points);

/// A note that names them: their rows stay below, and none of them is the best.
std::vector<std::string> unpriced_notes(const Field& field, const std::vector<PricedPoint>& points);

/// "sorted by mfu, the highest first".
std::string sorted_text(const Field& field);

}  // namespace ddpsim
