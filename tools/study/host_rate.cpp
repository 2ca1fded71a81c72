#include "tools/study/host_rate.hpp"

#include <algorithm>

#include "model/cost/collective.hpp"
#include "tools/study/fitted_rows.hpp"

namespace ddpsim {
namespace {

/// How long an all-reduce of 1 GiB takes where a host moves so much on the bus.
double large_all_reduce(CalibratedCluster cluster, Bandwidth host) {
  Link& link = cluster.intra_node;
  link.carries = host.bytes_per_second / link.bandwidth.bytes_per_second;
  return in_seconds(CollectiveLaw(cluster).all_reduce(GiB).time());
}

}  // namespace

std::optional<HostRates> host_rates_of(const CalibratedCluster& cluster) {
  if (cluster.ranks() == 1) return std::nullopt;
  const std::optional<HostRates> rates = assumed_host_rates(cluster);
  if (!rates) return std::nullopt;
  const CollectiveBound bound = CollectiveLaw(cluster).all_reduce(GiB).choice.bound;
  return bound == CollectiveBound::host_memory ? rates : std::nullopt;
}

std::optional<UnknownHost> unknown_host(const Scenario& scenario, const std::optional<Fit>& fit) {
  const CalibratedCluster& cluster = scenario.cluster;
  const std::optional<HostRates> rates = host_rates_of(cluster);
  if (!rates) return std::nullopt;
  UnknownHost host{*rates};
  if (fit && fit->rows > 0) {
    const std::vector<FittedRows> fitted = fitted_rows(scenario, scenario.measured->calibrate_on);
    const auto naive = std::ranges::find(fitted, Strategy::naive, &FittedRows::strategy);
    if (naive != fitted.end()) {
      const MeasuredRow row = mean_row(*scenario.measured, *naive);
      if (row.communication || (row.times.forward && row.times.backward)) return std::nullopt;
      host.fitted_naive = row.step;
    }
  }
  const double assumed = large_all_reduce(cluster, rates->assumed);
  host.shorter = 1 - large_all_reduce(cluster, rates->quickest) / assumed;
  host.longer = large_all_reduce(cluster, rates->slowest) / assumed - 1;
  return host;
}

StepRange range_of(const UnknownHost& host, Duration step, Duration without,
                   Duration communication) {
  if (!host.fitted_naive)
    return {std::max(std::min(step, without), step - scaled(communication, host.shorter)),
            step + scaled(communication, host.longer)};
  const Duration naive = std::max(Duration::zero(), *host.fitted_naive - without);
  const Duration hidden =
      std::max(Duration::zero(), naive - std::max(Duration::zero(), step - without));
  return {step - scaled(hidden, host.longer),
          std::max(step, without + scaled(naive, host.shorter))};
}

}  // namespace ddpsim
