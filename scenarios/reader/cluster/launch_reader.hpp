#pragma once

#include <chrono>
#include <optional>

#include "model/cluster/launch.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

/// Host costs where the scenario says nothing: 6 us to launch a kernel from the host; 35 us to
/// issue a collective through torch.distributed (pytorch pull request 147820: 70 us with, 35 us
/// without its second stream); a hook is one operation of a Python loop.
inline constexpr Launch default_launch{std::chrono::microseconds{6}, std::chrono::microseconds{35},
                                       std::chrono::microseconds{12}};

/// What a scenario says of `launch:`. What it leaves out stays as it is.
struct LaunchChange {
  std::optional<Duration> kernel, collective, hook, handover, wait;
  std::optional<Duration> wait_all_gather, wait_reduce_scatter;
  bool synchronous = false;  ///< `sync`

  void apply(Launch& launch) const;
  bool operator==(const LaunchChange&) const = default;
};

/// `sync`, one time for kernels and collectives, or a mapping.
Value<LaunchChange> launch_value();

/// The mapping alone, whose missing keys are zero.
const Map<Launch>& launch_map();

}  // namespace ddpsim
