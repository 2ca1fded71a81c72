#pragma once

#include <optional>

#include "model/cost/port_law.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/predict/fit.hpp"

namespace ddpsim {

/// What hosts move on the bus, where large all-reduces of this cluster go through the memory of its
/// hosts at a rate that is assumed; none where the rate is known, or does not set the pace.
std::optional<HostRates> host_rates_of(const CalibratedCluster& cluster);

/// What steps gain and lose on another host, where nobody measured this host's rate.
struct UnknownHost {
  HostRates rates;
  double shorter = 0;  ///< by this share of its time communication is shorter on the quickest host
  double longer = 0;   ///< and by this one it is longer on the slowest
  /// The measured naive step to which computation is fitted, with whatever the host's rate leaves
  /// of it; none: computation is known without.
  std::optional<Duration> fitted_naive{};
};
/// None where the rate is known: by the cluster, or by a measured row that tells the time of its
/// communication from that of its computation, and is fitted. `fit`: to the scenario's rows.
std::optional<UnknownHost> unknown_host(const Scenario& scenario, const std::optional<Fit>& fit);

struct StepRange {
  Duration low, high;
};
/// Between which a step lies on the hosts that there are. `without`: the same step without
/// communication. Communication that becomes shorter makes a step shorter by at most that much, and
/// no step is shorter than the one without. Where computation is fitted to a naive step, what
/// communication takes less in it computation takes more.
StepRange range_of(const UnknownHost& host, Duration step, Duration without,
                   Duration communication);

}  // namespace ddpsim
