#pragma once

#include <string>
#include <vector>

#include "backend/measure/measure_collectives.hpp"
#include "model/program/job.hpp"

namespace ddpsim {

/// The collectives of these steps, but for all-reduces of all ranks, each up to twice the largest
/// size that a step has of it, and no larger than `largest`.
std::vector<CollectiveCase> collectives_of(const std::vector<program::Job>& steps, int ranks,
                                           Bytes largest);

/// "all", "none" or a list such as "all-gather,broadcast": each among all ranks, and among groups
/// of every number of ranks that divides theirs; an all-reduce among groups alone. Throws
/// InputError that names `flag`.
std::vector<CollectiveCase> collectives_named(const std::string& flag, const std::string& names,
                                              int ranks, Bytes largest);

}  // namespace ddpsim
