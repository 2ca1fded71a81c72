#pragma once

#include <optional>
#include <vector>

#include "tools/import/trace_events.hpp"

namespace ddpsim {

/// A collective of a trace: the call that issued it, what it carried, and when it ran. Times count
/// from the first event of the file.
struct TracedCollective {
  TracedMessage message;
  std::uint32_t thread = 0;  ///< of the call
  Duration called{};         ///< where there is no call, when it began to run
  bool has_call = false;
  std::optional<std::pair<Duration, Duration>> ran;
};

/// The collectives of a trace by the time they were called. A call is the outermost of the spans
/// that issue it ("c10d::allreduce_" around "record_param_comms" around "nccl:all_reduce"), and
/// knows what any of them does. What ran belongs to the call that launched it (correlation ids), or
/// else to the first call of its kind and size that has none yet (on a CPU: of its step). Calls
/// that carry nothing (a wait) are no collectives.
///
/// `launched` tells when and where the device span of this index was launched.
std::vector<TracedCollective> collectives_of(
    const Trace& trace, const std::vector<std::optional<LaunchCall>>& launched);

}  // namespace ddpsim
