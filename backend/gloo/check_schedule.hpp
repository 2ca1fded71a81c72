#pragma once

#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Throws std::invalid_argument, one line, for a schedule that CPU ranks cannot carry out with the
/// right result: one in which no rank has inputs, or ranks without inputs would be asked more than
/// once; work for a rank that does not exist; a delayed all-reduce beside others; sparse gradients
/// that are reduced twice or that a hook fills.
void check_schedule(const Schedule& schedule, const Workload& workload, int ranks);

}  // namespace ddpsim
