#pragma once

#include "model/workload.hpp"
#include "scenarios/catalogue.hpp"

namespace ddpsim {

/// A workload profile (format: ddpsim.workload/1): what one process measured of its own training
/// step. Its backward pass becomes one timed kernel between every two instants at which gradients
/// were ready. Throws InputError.
Workload read_profile(const Entry& entry);

}  // namespace ddpsim
