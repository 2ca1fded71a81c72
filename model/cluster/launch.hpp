#pragma once

#include <optional>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Host times. Eager PyTorch spends more on an operation than the bare launch: see kernel_cost.hpp.
struct Launch {
  Duration kernel{};      ///< to enqueue one kernel
  Duration collective{};  ///< to issue one collective
  Duration hook{};        ///< to run one gradient hook
  /// From issuing a collective while kernels run to its stream taking it up; CPUs, where a thread
  /// has to be woken.
  Duration handover{};
  Duration wait{};  ///< to go on after a wait for a collective, on a synchronous device
  /// The same of an all-gather and of a reduce-scatter; none: as of any other collective.
  std::optional<Duration> wait_all_gather{}, wait_reduce_scatter{};

  bool operator==(const Launch&) const = default;
};

}  // namespace ddpsim
