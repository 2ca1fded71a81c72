#pragma once

#include "model/program/job.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim::program {

/// Where a task of a schedule comes from.
Origin origin_of(const Schedule& schedule, const ddpsim::Task& task);

}  // namespace ddpsim::program
