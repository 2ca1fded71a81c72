#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// For a scenario of which no strategy fits the memory of its device: what would. A line of what
/// was computed anew under each change: a smaller batch (by halves), as many samples in
/// micro-batches, the plainest optimizer, the devices of the catalogue; and what else holds memory,
/// but cannot be changed here. "" where a strategy fits, or the device's memory is not known.
/// Throws InputError as read_scenario does.
std::string memory_advice(const std::string& file, const std::vector<Setting>& set);

}  // namespace ddpsim
