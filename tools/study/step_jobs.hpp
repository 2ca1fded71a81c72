#pragma once

#include "backend/measure/job_of.hpp"
#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// Makes jobs of the scenario's schedules for real ranks, and throws std::invalid_argument, one
/// line, for a schedule that they would carry out with a wrong result. The scenario must outlive
/// it.
JobOf jobs_of(const Scenario& scenario);

}  // namespace ddpsim
