#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// A sentence on settings that put another device (`cluster.device`, or a ready cluster's as
/// `cluster.system`) beside the price of the one that was there before. "" where the settings give
/// a price as well, and where whoever wrote the price named no device.
std::string kept_price_note(const Scenario& scenario, const std::vector<Setting>& settings);

}  // namespace ddpsim
