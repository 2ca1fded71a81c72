#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// What the measured files that a scenario's predictions are made from say against themselves, a
/// sentence each that names the file's kind: its profile, its calibration, the tables of its links.
/// Where there is one, nobody knows how far such predictions are off.
std::vector<std::string> measurement_doubts(const Scenario& scenario);

}  // namespace ddpsim
