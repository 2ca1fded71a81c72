#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// A sentence on settings that put another device (`cluster.device`) beside the link that joined
/// the ranks of a node before, where no such device is known to be joined by that link: which links
/// stay, whose they are, and what to write for all of another system. "" where the settings say the
/// link as well, where the device goes with it (NVLink or PCIe of its generation, any network), and
/// where whoever wrote the link named no device.
std::string kept_links_note(const Scenario& scenario, const std::vector<Setting>& settings);

}  // namespace ddpsim
