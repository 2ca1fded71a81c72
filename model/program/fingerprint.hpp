#pragma once

#include <cstdint>
#include <string>

#include "model/program/job.hpp"

namespace ddpsim::program {

/// A hash of all that a job says. Every field counts: equal jobs have equal fingerprints in every
/// process on every machine, and jobs that differ in one field other ones, but for one case in
/// 2^64. Follows no index, so that the job need not have been checked.
std::uint64_t fingerprint(const Job& job);

/// A fingerprint as people compare it: sixteen hexadecimal digits.
std::string fingerprint_text(std::uint64_t fingerprint);

}  // namespace ddpsim::program
