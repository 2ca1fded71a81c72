#pragma once

#include <string>

#include "model/program/job.hpp"

namespace ddpsim::program {

/// What check(job) refuses of the order of tasks and of collectives, found plainly: of every rank,
/// for each task the set of all tasks that have ended when it begins, and for each element the sets
/// of those that have read and written it. "" if nothing is wrong. For programs of at most 64 tasks
/// whose indices are right.
std::string plainly_wrong_in(const Job& job);

}  // namespace ddpsim::program
