#include "model/cost/interference.hpp"

#include <algorithm>
#include <cmath>

#include "model/cluster/deciding_link.hpp"
#include "model/cost/collective_ports.hpp"
#include "model/cost/port_law.hpp"

namespace ddpsim {
namespace {

constexpr double memory_traffic_per_link_byte = 2.5;  // k
constexpr double least_memory_share = 0.2;  // a kernel is never starved of memory altogether

using Law = InterferenceLaw;

/// The share of its bandwidth that a collective over such links loses beside kernels.
double lost_beside_compute(const Cluster& cluster) {
  if (crosses_host(cluster)) return Law::lost_through_host;
  if (over_nics(cluster)) return Law::lost_over_pcie;
  const LinkKind kind = deciding_link(cluster).kind;
  const bool nvlink = kind == LinkKind::nvlink || kind == LinkKind::plain;
  return nvlink ? Law::lost_over_nvlink : Law::lost_over_pcie;
}

/// Where a host that moves `rate` bytes/s on the bus stands between slow hosts (0) and fast hosts
/// (1).
double between_hosts(double rate) {
  if (!(rate > Law::slow_host)) return 0;
  return std::min(1.0, std::log(rate / Law::slow_host) / std::log(Law::fast_host / Law::slow_host));
}

double memory_slowdown(const MeasuredInterference& point) {
  return point.memory_slowdown.value_or(point.compute_slowdown);
}

MeasuredInterference between(const std::vector<MeasuredInterference>& measured, Bytes size) {
  const auto right =
      std::upper_bound(measured.begin(), measured.end(), size,
                       [](Bytes value, const auto& point) { return value < point.size; });
  if (right == measured.begin()) return measured.front();
  if (right == measured.end()) return measured.back();
  const MeasuredInterference &low = *(right - 1), &high = *right;
  const auto log_of = [](Bytes bytes) { return std::log(static_cast<double>(bytes.count)); };
  const double share = (log_of(size) - log_of(low.size)) / (log_of(high.size) - log_of(low.size));
  return {size, std::lerp(low.compute_slowdown, high.compute_slowdown, share),
          std::lerp(low.communication_slowdown, high.communication_slowdown, share),
          std::lerp(memory_slowdown(low), memory_slowdown(high), share)};
}

}  // namespace

bool crosses_host(const Cluster& cluster) {
  return through_host(cluster) && (cluster.nodes == 1 || cluster.ranks_per_node.largest() > 1);
}

bool over_nics(const Cluster& cluster) {
  if (cluster.nodes == 1) return false;
  switch (cluster.inter_node.kind) {
    case LinkKind::plain:
    case LinkKind::ethernet:
    case LinkKind::infiniband:
      return true;
    case LinkKind::nvlink:
    case LinkKind::pcie:
      return false;
  }
  return false;
}

InterferenceLaw::InterferenceLaw(const CalibratedCluster& cluster)
    : multiprocessors_(cluster.device.multiprocessors),
      synchronous_(cluster.device.synchronous),
      memory_{cluster.device.memory_bandwidth.bytes_per_second * cluster.device.memory_efficiency},
      fixed_(cluster.interference),
      lost_(lost_beside_compute(cluster)),
      by_host_(crosses_host(cluster)),
      usual_host_(cluster.nodes > 1 ? bus_through_host(cluster).bytes_per_second : 0) {
  if (!cluster.calibration) return;
  for (const MeasuredInterference& point : cluster.calibration->interference)
    if (point.channels == 0) measured_.push_back(point);
  for (MeasuredInterference& point : measured_) {
    point.memory_slowdown = std::max(1.0, memory_slowdown(point));
    point.compute_slowdown = std::max(1.0, point.compute_slowdown);
    point.communication_slowdown = std::max(1.0, point.communication_slowdown);
  }
}

Interference InterferenceLaw::beside(const CollectiveCost& collective, Bytes size) const {
  double compute_bound = 1, memory_bound = 1, communication = 1, later = 0;
  if (fixed_) {
    compute_bound = memory_bound = fixed_->compute_slowdown;
    communication = fixed_->communication_slowdown;
  } else if (collective.time() <= Duration::zero()) {
    // Nothing runs beside anything.
  } else if (!measured_.empty()) {
    const MeasuredInterference point = between(measured_, size);
    compute_bound = point.compute_slowdown;
    memory_bound = memory_slowdown(point);
    communication = point.communication_slowdown;
  } else {
    const double taken = synchronous_ ? 0 : std::min(collective.channels, multiprocessors_ / 2);
    compute_bound = multiprocessors_ / (multiprocessors_ - taken);
    const double left = 1 - lost_;
    const double stolen = memory_traffic_per_link_byte * left * collective.bus.bytes_per_second /
                          memory_.bytes_per_second;
    memory_bound = 1 / std::max(least_memory_share, 1 - stolen);
    const double latency = in_seconds(collective.latency),
                 transfer = in_seconds(collective.transfer);
    communication = (latency + transfer / left) / (latency + transfer);
    if (by_host_) {
      const double bus = collective.bus.bytes_per_second, host = std::max(bus, usual_host_);
      const double fast = between_hosts(host), busy = host > 0 ? bus / host : 1;
      const double slower = 1 / std::lerp(1.0, std::lerp(speed_beside_slow_host, 1.0, fast), busy);
      compute_bound = std::max(compute_bound, slower);
      memory_bound = std::max(memory_bound, slower);
      later = busy * fast * seconds_later_through_host;
    }
  }
  const auto felt = [&](double slowdown) {
    return static_cast<float>(1 + strength * (slowdown - 1));
  };
  return {felt(compute_bound), felt(memory_bound), felt(communication),
          static_cast<float>(strength * later)};
}

}  // namespace ddpsim
