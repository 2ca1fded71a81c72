#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/import/intervals.hpp"
#include "tools/import/torch_trace.hpp"
#include "tools/import/trace_collectives.hpp"

namespace ddpsim {

/// A trace in the orders its questions need.
struct IndexedTrace {
  const Trace& trace;
  std::vector<HostSpan> host;                       ///< by begin, outer before inner
  std::vector<std::optional<LaunchCall>> launched;  ///< of each device span
  std::vector<TracedCollective> collectives;
  /// By launch (or, if that is not known, begin): when all compute on the device that was launched
  /// up to there had ended.
  std::vector<std::pair<Duration, Duration>> done;
  Coverage computing{{}};  ///< kernels on the device; operators, if nothing ran on one

  Coverage waiting{{}};  ///< the host waits for the device

  explicit IndexedTrace(const Trace& given);

  /// When the device has done what was launched before `host`, or `host` if that is later.
  Duration passed(Duration host_time) const {
    const auto after =
        std::lower_bound(done.begin(), done.end(), std::pair(host_time, Duration::min()));
    return after == done.begin() ? host_time : std::max(host_time, (after - 1)->second);
  }
};

/// A hook and what DDP did in it besides accumulating the gradient.
struct Hook {
  HostSpan span;
  std::int32_t shape = -1;
  Duration own_work{};  ///< on the device, or on the host where there is none
};

/// What a stretch of the host's time holds, before it is known to be a whole step.
struct RawStep {
  FoundStep found;
  std::vector<TracedCollective> collectives;
  std::vector<Hook> hooks;
  Duration begin{};
  int forwards = 0;
  // Times by the file's clock, as IndexedTrace::passed tells it.
  Duration backward_begin{}, backward_end{};
  Duration copied{};                                      ///< the last copy out of a bucket
  std::vector<std::pair<Duration, Duration>> optimizers;  ///< begin and end of each call
};

/// The steps of a trace as far as they show on their own: phases, hooks, copies and the collectives
/// called in them, in order. Notes where the trace does not mark its steps itself.
std::vector<RawStep> steps_of(const IndexedTrace& index, std::vector<std::string>& notes);

}  // namespace ddpsim
