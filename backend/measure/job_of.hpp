#pragma once

#include <functional>

#include "model/program/job.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// Makes the job of a step, or of a variant of it (model/schedule/variants.hpp).
using JobOf = std::function<program::Job(const Schedule&)>;

}  // namespace ddpsim
