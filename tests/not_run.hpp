#pragma once

#include <string>

#include <catch2/catch.hpp>

namespace ddpsim {

/// Says why this test cannot be run here. ctest then counts it as skipped, and tools/test names it
/// in the end.
inline void not_run(const std::string& why) {
  WARN("NOT RUN: " << why);
}

}  // namespace ddpsim
