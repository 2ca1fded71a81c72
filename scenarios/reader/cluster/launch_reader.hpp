#pragma once

#include <optional>

#include "model/cluster/launch.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

/// What a scenario says of `launch:`. What it leaves out stays as it is.
struct LaunchChange {
  std::optional<Duration> kernel, collective, hook, handover, wait;
  bool synchronous = false;  ///< `sync`

  void apply(Launch& launch) const;
  bool operator==(const LaunchChange&) const = default;
};

/// `sync`, one time for kernels and collectives, or a mapping.
Value<LaunchChange> launch_value();

/// The mapping alone, whose missing keys are zero.
const Map<Launch>& launch_map();

}  // namespace ddpsim
