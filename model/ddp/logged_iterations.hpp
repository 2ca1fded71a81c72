#pragma once

#include <vector>

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// The parts of a `bucketed` step that DDP's logger counts as iterations: every micro-batch that
/// communicates (rule R47).
std::vector<LoggedIteration> logged_iterations(const Schedule& schedule);

}  // namespace ddpsim
