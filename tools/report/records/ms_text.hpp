#pragma once

#include <string>

#include <fmt/format.h>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Milliseconds with two decimals, without the unit: "12.35".
inline std::string ms_text(Duration time) {
  return fmt::format("{:.2f}", in_ms(time));
}

}  // namespace ddpsim
