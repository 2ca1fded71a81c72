#pragma once

#include <string>

#include "model/workload/workload.hpp"

namespace ddpsim {

/// The processor of this machine and its cores, for people.
std::string cpu_name();

/// What ranks may take of this machine's memory, all of them together.
Bytes host_memory();

/// Throws std::invalid_argument if this machine lacks the memory for what so many ranks need:
/// parameters, gradients, a second set of them, buckets and two states of an optimizer.
void check_host_memory(const Workload& workload, int ranks);

}  // namespace ddpsim
