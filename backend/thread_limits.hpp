#pragma once

namespace ddpsim {

/// What to say behind "Resource temporarily unavailable", of a thread or process that the system
/// does not start.
inline constexpr const char* what_limits_threads =
    "ulimit -u limits threads and processes, ulimit -v their memory";

}  // namespace ddpsim
