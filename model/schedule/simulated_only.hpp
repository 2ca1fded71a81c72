#pragma once

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Throws std::invalid_argument, saying what to change, for a schedule that can be predicted but
/// that no backend executes: all-reduces that make means, gradients that stay in a bucket.
void check_not_simulated_only(const Schedule& schedule);

}  // namespace ddpsim
