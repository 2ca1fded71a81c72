#pragma once

#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Throws std::invalid_argument, one line, for a step that can be predicted and that real ranks
/// would carry out with a wrong result: one in which no rank has inputs, or ranks without inputs
/// would be asked more than once; a delayed all-reduce beside others; sparse gradients that are
/// reduced twice or that a hook fills; and as check_not_simulated_only does.
void check_for_ranks(const Schedule& schedule, const Workload& workload);

}  // namespace ddpsim
