#pragma once

#include <string>

#include <yaml-cpp/yaml.h>

#include "model/base/quantity.hpp"

namespace ddpsim {

// Values as files of ours spell them, so that reading gives back what was written.

/// To the picosecond, in the largest unit it fills: "830 us", "1.234567890001 s". Reading gives
/// back times below 2^51 ps (37 minutes) exactly, longer ones with the precision of a double.
std::string exact(Duration time);
/// To the byte, in the largest unit that divides it.
std::string exact(Bytes size);
/// In GB/s or TFLOP/s where that loses nothing, else in B/s or FLOP/s.
std::string exact(Bandwidth rate);
std::string exact(FlopRate rate);

/// Any text on one line, in double quotes; what is no UTF-8 becomes U+FFFD.
void write_text(YAML::Emitter& out, const std::string& text);

}  // namespace ddpsim
