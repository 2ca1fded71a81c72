#pragma once

#include <string>
#include <vector>

#include "tools/report/names.hpp"

namespace ddpsim {

/// Timelines as text, one scale for all: what the compute and the communication stream of rank 0
/// do.
std::string timeline_chart(const std::vector<NamedStep>& steps);

}  // namespace ddpsim
