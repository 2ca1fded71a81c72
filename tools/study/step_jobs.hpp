#pragma once

#include <vector>

#include "model/program/job.hpp"
#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// The steps of these trainings as real ranks run them, on this cluster with kernels on the host
/// thread or not. `all_have_inputs`: no rank has run out of them. Throws std::invalid_argument for
/// a step that cannot be, or that real ranks would carry out with a wrong result.
std::vector<program::Job> jobs_of(const Scenario& scenario, const std::vector<Training>& trainings,
                                  bool all_have_inputs = false);

}  // namespace ddpsim
