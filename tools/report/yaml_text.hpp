#pragma once

#include <string>

#include "model/base/quantity.hpp"

namespace ddpsim {

// Values as files of ours spell them, so that reading gives back what was written.

/// Any text on one line, in double quotes.
std::string quoted(const std::string& text);
/// To the picosecond, in the largest unit it fills: "830 us", "1.234567890001 s".
std::string exact(Duration time);
/// To the byte, in the largest unit that divides it.
std::string exact(Bytes size);

}  // namespace ddpsim
