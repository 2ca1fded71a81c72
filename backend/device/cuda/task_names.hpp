#pragma once

#include <string>

#include "model/program/job.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// For profilers: "backward blocks.3.attn.q_proj", "copy in lm_head.weight",
/// "all-reduce bucket 2 (25 MiB)". `workload`: whose layers and parameters the job has; or null.
std::string task_name(const program::Job& job, const program::Task& task, const Workload* workload);

}  // namespace ddpsim
