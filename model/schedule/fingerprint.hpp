#pragma once

#include <cstdint>
#include <string>

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// A hash of all that a schedule says: what is done, in which order, and what waits for what. Every
/// field of its tasks, dependencies, works, buckets with the steps of their comm hook, and user's
/// hooks counts. Equal schedules have equal fingerprints in every process on every machine. A
/// schedule that differs in a single field has another fingerprint, but for one case in 2^64.
std::uint64_t fingerprint(const Schedule& schedule);

/// A fingerprint as people compare it: sixteen hexadecimal digits.
std::string fingerprint_text(std::uint64_t fingerprint);

}  // namespace ddpsim
