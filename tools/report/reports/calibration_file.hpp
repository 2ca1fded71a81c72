#pragma once

#include <string>

#include "model/cost/calibration.hpp"

namespace ddpsim {

/// A calibration as the YAML file that `cluster: {calibration: FILE}` reads
/// (scenarios/calibration_reader.hpp). Read back it is equal, entries in order: times are written
/// to the picosecond, sizes to the byte. The same calibration gives the same text, whatever the
/// order of its entries. Bytes of a text that are no UTF-8 become U+FFFD.
std::string calibration_yaml(const Calibration& calibration);

}  // namespace ddpsim
