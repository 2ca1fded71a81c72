#pragma once

#include <string>

#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// For profilers: "backward blocks.3.attn.q_proj", "copy in lm_head.weight",
/// "all-reduce bucket 2 (25 MiB)".
std::string name_of(const Task& task, const Schedule& schedule, const Workload& workload);

}  // namespace ddpsim
