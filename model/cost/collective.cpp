#include "model/cost/collective.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ddpsim {
namespace {

const Link& deciding_link(const Cluster& cluster) {
  return cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
}

/// What was measured of the all-reduces of this cluster is the table of the link that counts.
CalibratedCluster with_measured_link(CalibratedCluster cluster) {
  if (!cluster.calibration || cluster.calibration->all_reduce.empty()) return cluster;
  Link& link = cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
  link.all_reduce.clear();
  // More bytes never take less time, and what disturbs a measurement only lengthens it: where a
  // larger size was faster, its time holds.
  const auto& points = cluster.calibration->all_reduce;
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    const Duration larger =
        link.all_reduce.empty() ? Duration::max() : link.all_reduce.back().second;
    link.all_reduce.emplace_back(point->size, std::min(point->time.median, larger));
  }
  std::reverse(link.all_reduce.begin(), link.all_reduce.end());
  link.table_ranks = cluster.calibration->ranks;
  cluster.calibration.reset();
  return cluster;
}

/// The ring goes through every link once: its slowest hop sets the pace. A node's NICs share the
/// load.
RingLaw ring_law(const Cluster& cluster) {
  RingLaw ring{cluster.ranks(), cluster.intra_node.latency, cluster.intra_node.bandwidth};
  if (cluster.nodes > 1) {
    const Link& network = cluster.inter_node;
    const int nics = network.nics > 0                       ? network.nics
                     : network.kind == LinkKind::infiniband ? cluster.ranks_per_node
                                                            : 1;
    const Bandwidth between{network.bandwidth.bytes_per_second * nics};
    ring.latency = std::max(ring.latency, network.latency);
    ring.bandwidth = cluster.ranks_per_node > 1 ? std::min(ring.bandwidth, between) : between;
  }
  if (ring.ranks > 1 && ring.bandwidth.bytes_per_second <= 0)
    throw std::invalid_argument("the link between the ranks has no bandwidth");
  return ring;
}

/// Above what any x16 PCIe link carries (gen 5: 63 GB/s): it must be NVLink.
constexpr Bandwidth more_than_pcie = gigabytes_per_second(64);

/// The bandwidth a link is known to have: its own, or what its table reached on the bus.
Bandwidth known_bandwidth(const Link& link, int ranks) {
  Bandwidth known = link.bandwidth;
  for (const auto& [size, time] : link.all_reduce)
    known.bytes_per_second =
        std::max(known.bytes_per_second,
                 2.0 * (ranks - 1) / ranks * static_cast<double>(size.count) / in_seconds(time));
  return known;
}

/// NCCL on this cluster, for the number of SMs it takes: what a plain or only measured link is
/// follows from its bandwidth.
std::optional<NcclLaw> who_takes_sms(Cluster cluster) {
  if (cluster.device.compute_capability == 0 || cluster.ranks() == 1) return std::nullopt;
  for (Link* link : {&cluster.intra_node, &cluster.inter_node}) {
    link->bandwidth = known_bandwidth(*link, cluster.ranks());
    if (link->kind == LinkKind::plain)
      link->kind = link->bandwidth > more_than_pcie ? LinkKind::nvlink : LinkKind::pcie;
  }
  if (cluster.nodes > 1 && cluster.inter_node.kind != LinkKind::infiniband)
    cluster.inter_node.kind = LinkKind::ethernet;
  return NcclLaw(nccl_system(cluster));
}

}  // namespace

Duration table_time(const AllReduceTable& table, Bytes size) {
  if (table.empty()) throw std::invalid_argument("an all-reduce table has no entries");
  if (size.count <= 0) return table.front().second;
  const double x = std::log(static_cast<double>(size.count));
  const auto log_point = [&](std::size_t i) {
    return std::pair{std::log(static_cast<double>(table[i].first.count)),
                     std::log(static_cast<double>(table[i].second.count()))};
  };
  if (table.size() == 1) {
    const auto [x0, y0] = log_point(0);
    return Duration{std::llround(std::exp(y0 + (x - x0)))};
  }
  const auto above = std::upper_bound(table.begin(), table.end(), size,
                                      [](Bytes s, const auto& entry) { return s < entry.first; });
  const auto right =
      std::clamp<std::size_t>(static_cast<std::size_t>(above - table.begin()), 1, table.size() - 1);
  if (table[right].first == size) return table[right].second;
  if (table[right - 1].first == size) return table[right - 1].second;
  const auto [x0, y0] = log_point(right - 1);
  const auto [x1, y1] = log_point(right);
  return Duration{std::llround(std::exp(y0 + (x - x0) * (y1 - y0) / (x1 - x0)))};
}

CollectiveLaw::CollectiveLaw(const CalibratedCluster& given) : ranks_(given.ranks()) {
  const CalibratedCluster cluster = with_measured_link(given);
  channels_ = who_takes_sms(cluster);
  const Link& link = deciding_link(cluster);
  const bool nccl_knows = cluster.device.compute_capability > 0 && link.kind != LinkKind::plain;
  CollectiveModel model = cluster.collectives;
  if (model == CollectiveModel::automatic)
    model = !link.all_reduce.empty() ? CollectiveModel::table
            : nccl_knows             ? CollectiveModel::nccl
                                     : CollectiveModel::alpha_beta;
  switch (model) {
    case CollectiveModel::nccl:
      if (cluster.device.compute_capability == 0)
        throw std::invalid_argument("NCCL's time model needs a CUDA device");
      law_ = NcclLaw(nccl_system(cluster));
      through_host_ =
          cluster.nodes == 1 && link.kind == LinkKind::pcie && !cluster.device.peer_to_peer;
      return;
    case CollectiveModel::table:
      if (link.all_reduce.empty()) throw std::invalid_argument("the link has no all_reduce table");
      law_ = link.all_reduce;
      table_ranks_ = link.table_ranks;
      for (const auto& [size, time] : link.all_reduce)
        table_peak_.bytes_per_second = std::max(table_peak_.bytes_per_second,
                                                static_cast<double>(size.count) / in_seconds(time));
      return;
    case CollectiveModel::automatic:
    case CollectiveModel::alpha_beta:
      law_ = ring_law(cluster);
      return;
  }
}

CollectiveCost CollectiveLaw::from_nccl(const NcclLaw& law, Collective collective,
                                        Bytes size) const {
  const NcclEstimate estimate = law.choose(collective, size);
  CollectiveCost cost;
  cost.latency = estimate.latency;
  cost.transfer = (through_host_ ? 2 : 1) * (estimate.time - estimate.latency);
  return cost;
}

CollectiveCost CollectiveLaw::from_table(const AllReduceTable& table, Bytes size) const {
  const Duration time = table_time(table, size);
  CollectiveCost cost;
  cost.transfer = std::min(time, size / table_peak_);
  cost.latency = time - cost.transfer;
  if (table_ranks_ > 1 && table_ranks_ != ranks_) {
    // A ring of n takes 2 (n - 1) steps and moves 2 (n - 1) / n of the bytes.
    const double n = ranks_, measured = table_ranks_;
    const double steps = (n - 1) / (measured - 1);
    cost.latency = scaled(cost.latency, steps);
    cost.transfer = scaled(cost.transfer, steps * measured / n);
  }
  return cost;
}

CollectiveCost CollectiveLaw::all_reduce(Bytes size) const {
  CollectiveCost cost;
  if (ranks_ == 1) return cost;
  const double n = ranks_;
  if (const auto* nccl = std::get_if<NcclLaw>(&law_)) {
    cost = from_nccl(*nccl, Collective::all_reduce, size);
  } else if (const auto* ring = std::get_if<RingLaw>(&law_)) {
    const double steps = 2 * (n - 1);
    cost.latency = scaled(ring->latency, steps);
    cost.transfer = from_seconds(steps / n * static_cast<double>(size.count) /
                                 ring->bandwidth.bytes_per_second);
  } else {
    cost = from_table(std::get<AllReduceTable>(law_), size);
  }
  return priced(cost, Collective::all_reduce, size);
}

CollectiveCost CollectiveLaw::priced(CollectiveCost cost, Collective collective, Bytes size) const {
  const double n = ranks_;
  cost.latency = std::max(cost.latency + call_overhead, Duration::zero());
  if (channels_) cost.channels = channels_->choose(collective, size).channels;
  if (cost.transfer > Duration::zero())
    cost.bus.bytes_per_second =
        2 * (n - 1) / n * static_cast<double>(size.count) / in_seconds(cost.transfer);
  if (latency_factor != 1) cost.latency = scaled(cost.latency, latency_factor);
  if (transfer_factor != 1) cost.transfer = scaled(cost.transfer, transfer_factor);
  return cost;
}

CollectiveCost CollectiveLaw::of(Collective collective, Bytes payload, int ranks) const {
  if (ranks_ == 1 || ranks == 1) return {};
  if (ranks > 1 && ranks < ranks_) {
    // A smaller ring over the same links: 2 (n - 1) steps, 2 (n - 1) / n of the bytes.
    CollectiveCost cost = of(collective, payload);
    const double n = ranks, all = ranks_;
    const double steps = (n - 1) / (all - 1);
    cost.latency = scaled(cost.latency, steps);
    cost.transfer = scaled(cost.transfer, steps * all / n);
    return cost;
  }
  if (collective == Collective::all_reduce) return all_reduce(payload);
  const Bytes moved = collective == Collective::all_gather ? ranks_ * payload : payload;
  if (const auto* nccl = std::get_if<NcclLaw>(&law_))
    return priced(from_nccl(*nccl, collective, moved), collective, moved);
  CollectiveCost cost = all_reduce(moved);
  cost.latency = cost.latency / 2;
  cost.transfer = cost.transfer / 2;
  return cost;
}

Duration CollectiveLaw::broadcast(Bytes size) const {
  if (ranks_ == 1) return {};
  if (const auto* nccl = std::get_if<NcclLaw>(&law_))
    return from_nccl(*nccl, Collective::broadcast, size).time();
  return (all_reduce(size).time() - call_overhead) / 2;
}

const char* CollectiveLaw::name() const {
  if (std::holds_alternative<NcclLaw>(law_)) return "nccl";
  return std::holds_alternative<RingLaw>(law_) ? "alpha-beta" : "table";
}

}  // namespace ddpsim
