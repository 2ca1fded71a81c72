#pragma once

#include <string>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// The roundest cap between two: 25 MiB if it is among them, else as few decimals of a MiB as will
/// do, and of those the roundest number. In bytes as `int(mb * 1024 * 1024)` yields them.
struct RoundCap {
  std::string mib;  ///< "25", "0.125"
  Bytes bytes;
  int roughness = 0;  ///< grows with the decimals, then with the digits; 0 of 25 MiB
};
RoundCap round_cap(Bytes low, Bytes high);

}  // namespace ddpsim
