#pragma once

#include "model/program/job.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim::program {

/// The step of a comm hook that the task is; null: it is none.
const CommStep* step_of(const Schedule& schedule, const ddpsim::Task& task);

/// Where a task of a schedule comes from; without its label.
Origin origin_of(const Schedule& schedule, const ddpsim::Task& task);

}  // namespace ddpsim::program
