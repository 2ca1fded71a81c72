#include "tools/command/tolerance.hpp"

#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "tools/command/command.hpp"
#include "tools/report/writers/notes.hpp"

namespace ddpsim {
namespace {

/// With as many decimals as tell the error from the tolerance, both per cent.
std::string larger_text(double error, double tolerance) {
  constexpr int fewest = 1, most = 9;
  for (int decimals = fewest; decimals < most; ++decimals)
    if (std::string text = fmt::format("{:.{}f}", error, decimals);
        std::strtod(text.c_str(), nullptr) > tolerance)
      return text;
  return fmt::format("{:.6g}", error);
}

}  // namespace

int held_to_tolerance(double median_error, double tolerance) {
  if (tolerance < 0 || median_error <= tolerance) return exit_done;
  constexpr double per_cent = 100;
  note("ddpsim: the median error of {} % is beyond the tolerance of {:.6g} %",
       larger_text(per_cent * median_error, per_cent * tolerance), per_cent * tolerance);
  return exit_tolerance;
}

}  // namespace ddpsim
