#pragma once

#include <set>
#include <string>

#include "model/cost/calibration.hpp"

namespace ddpsim {

/// How many ranks measured the all-reduces that the cluster's are interpolated from: its own number
/// where their table does not say; 0: they are by a law.
int ranks_of_table(const CalibratedCluster& cluster);

/// A sentence on all-reduces that `measured` ranks took and that are scaled for others of `ranks`;
/// "": none are, or they are by a law (`measured` is 0).
std::string scaled_table_note(int measured, const std::set<int>& ranks);

}  // namespace ddpsim
