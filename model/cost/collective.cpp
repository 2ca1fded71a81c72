#include "model/cost/collective.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/cluster/deciding_link.hpp"
#include "model/cost/collective_ports.hpp"

namespace ddpsim {
namespace {

/// What was measured of the all-reduces of this cluster is the table of the link that counts.
CalibratedCluster with_measured_link(CalibratedCluster cluster) {
  if (!cluster.calibration || cluster.calibration->all_reduce.empty()) return cluster;
  Link& link = cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
  link.all_reduce.clear();
  for (const auto& point : cluster.calibration->all_reduce)
    link.all_reduce.emplace_back(point.size, point.time.median);
  link.table_ranks = cluster.calibration->ranks;
  cluster.calibration.reset();
  return cluster;
}

/// Are the device and the link that counts of kinds that NCCL knows?
bool nccl_knows(const Cluster& cluster) {
  return cluster.device.compute_capability > 0 && deciding_link(cluster).kind != LinkKind::plain;
}

CollectiveModel law_of(const Cluster& cluster) {
  if (cluster.collectives != CollectiveModel::automatic) return cluster.collectives;
  if (!deciding_link(cluster).all_reduce.empty()) return CollectiveModel::table;
  return nccl_knows(cluster) ? CollectiveModel::nccl : CollectiveModel::alpha_beta;
}

/// Every collective between nodes goes through all of them: the network is as slow as the NICs of
/// the slowest node. What was measured stays as it is here; of a calibration see over_slow_nics.
CalibratedCluster with_slowest_nics(CalibratedCluster cluster) {
  Link& network = cluster.inter_node;
  const Bandwidth slowest = slowest_nic(cluster);
  if (cluster.nodes == 1 || slowest == network.bandwidth ||
      law_of(cluster) == CollectiveModel::table)
    return cluster;
  // The share of it that NCCL's search assumes stays, as under a link's key `base`.
  network.nccl_bandwidth.bytes_per_second *=
      slowest.bytes_per_second / network.bandwidth.bytes_per_second;
  network.bandwidth = slowest;
  return cluster;
}

/// What each of a stream of all-reduces takes, where that was measured.
AllReduceTable streamed_table(const CalibratedCluster& cluster) {
  AllReduceTable table;
  if (cluster.calibration)
    for (const AllReduceCost& point : cluster.calibration->all_reduce)
      if (point.streamed) table.emplace_back(point.size, *point.streamed);
  return growing(std::move(table));
}

/// The ring goes through every link once: its slowest hop sets the pace. A node's NICs share the
/// load, and the node with the fewest is the slowest. A scenario that says `alpha-beta` has its
/// links as they are written; where the law was chosen because a network does not say its kind,
/// GPUs go through the host's memory no faster than NCCL's law has it.
RingLaw ring_law(const Cluster& cluster) {
  RingLaw ring{cluster.ranks(), cluster.intra_node.latency, cluster.intra_node.bandwidth};
  if (cluster.nodes > 1) {
    const Link& network = cluster.inter_node;
    // A measured table's law is of the ring as a whole, over however many NICs.
    if (!network.all_reduce.empty() && network.kind == LinkKind::plain)
      return {cluster.ranks(), network.latency, network.bandwidth, 1, CollectiveBound::nic};
    ring.nics = nics_per_node(cluster);
    const Bandwidth between{network.bandwidth.bytes_per_second * ring.nics};
    ring.latency = std::max(ring.latency, network.latency);
    if (cluster.collectives == CollectiveModel::automatic && through_host(cluster) &&
        cluster.ranks_per_node.largest() > 1 && bus_through_host(cluster) < ring.bandwidth) {
      ring.bandwidth = bus_through_host(cluster);
      if (assumed_host_rates(cluster)) ring.narrowest = CollectiveBound::host_memory;
    }
    if (cluster.ranks_per_node.largest() == 1 || between < ring.bandwidth) {
      ring.bandwidth = between;
      ring.narrowest = CollectiveBound::nic;
    }
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

/// The rate that NCCL counts for a NIC of which only what all-reduces reached is known: that of the
/// slowest NIC on sale that carries as much. Its search fits channels into line rates, so a
/// measured rate is no input to it: on Hopper 11.2 GB/s takes three channels of 3 GB/s where 12.5
/// GB/s takes one of 12.
/// Source: 1, 10, 25, 50, 100, 200, 400 and 800 Gbit/s of IEEE 802.3 and InfiniBand (40 Gbit/s is
/// no card for GPUs of today); NCCL 2.28.9, src/graph/topo.cc, Mbit/s / 8000.
Bandwidth line_rate_above(Bandwidth reached) {
  for (const double gigabytes : {0.125, 1.25, 3.125, 6.25, 12.5, 25.0, 50.0, 100.0})
    if (reached <= gigabytes_per_second(gigabytes)) return gigabytes_per_second(gigabytes);
  return reached;
}

/// The rate of one NIC, of a network whose table is of a node's NICs together. What a link of a
/// kind says itself is of one NIC.
Bandwidth nic_below_table(const Cluster& cluster) {
  const Link& network = cluster.inter_node;
  Bandwidth of_nic = known_bandwidth(network, cluster.ranks());
  of_nic.bytes_per_second /= nics_per_node(cluster);
  if (network.kind != LinkKind::plain) of_nic = std::max(of_nic, network.bandwidth);
  return line_rate_above(of_nic);
}

/// NCCL on this cluster, for the number of SMs it takes: what a plain or only measured link is
/// follows from its bandwidth.
std::optional<NcclLaw> who_takes_sms(Cluster cluster) {
  if (cluster.device.compute_capability == 0 || cluster.ranks() == 1) return std::nullopt;
  if (cluster.nodes > 1 && !cluster.inter_node.all_reduce.empty())
    cluster.inter_node.bandwidth = nic_below_table(cluster);
  Link& inside = cluster.intra_node;
  inside.bandwidth = known_bandwidth(inside, cluster.ranks());
  for (Link* link : {&cluster.intra_node, &cluster.inter_node})
    if (link->kind == LinkKind::plain)
      link->kind = link->bandwidth > more_than_pcie ? LinkKind::nvlink : LinkKind::pcie;
  if (cluster.nodes > 1 && cluster.inter_node.kind != LinkKind::infiniband)
    cluster.inter_node.kind = LinkKind::ethernet;
  return NcclLaw(nccl_system(cluster));
}

/// Beyond the last point of a table a byte takes what it took between that point and the largest of
/// at most half its size that took less: two points close to each other say little of a slope, and
/// points that took as long, as of a noisy measurement, none. It takes no more than a byte of the
/// table's quickest point does, latency and all.
Duration table_time_beyond(const AllReduceTable& table, Bytes size) {
  const auto& [last_size, last] = table.back();
  double least = in_seconds(last) / static_cast<double>(last_size.count);
  for (const auto& [bytes, time] : table)
    least = std::min(least, in_seconds(time) / static_cast<double>(bytes.count));
  for (std::size_t i = table.size() - 1; i-- > 0;) {
    const auto& [bytes, time] = table[i];
    if (bytes.count > last_size.count / 2 || time >= last) continue;
    least =
        std::min(least, in_seconds(last - time) / static_cast<double>((last_size - bytes).count));
    break;
  }
  return last + from_seconds(least * static_cast<double>((size - last_size).count));
}

/// The collective as NCCL's tables know it, or the one that moves as many bytes.
Collective kind_of(Operation operation) {
  if (operation == Operation::all_to_all) return Collective::reduce_scatter;
  if (operation == Operation::send_receive) return Collective::broadcast;
  switch (collective_of(operation)) {
    case CollectiveOperation::all_reduce:
      return Collective::all_reduce;
    case CollectiveOperation::all_gather:
      return Collective::all_gather;
    case CollectiveOperation::reduce_scatter:
      return Collective::reduce_scatter;
    case CollectiveOperation::broadcast:
      return Collective::broadcast;
  }
  return Collective::all_reduce;
}

/// How many times as long transfers take over the slowest NIC that an exception names as over those
/// that a calibration's all-reduces went through: these carry what its quickest one reached on the
/// bus. At least 1.
double over_slow_nics(const CalibratedCluster& given, const Link& measured) {
  if (!given.calibration || given.calibration->all_reduce.empty() || given.nodes == 1) return 1;
  Link known;
  known.all_reduce = measured.all_reduce;
  const double reached = known_bandwidth(known, measured.table_ranks).bytes_per_second;
  double slowest = reached;
  for (const RankException& exception : given.exceptions)
    if (exception.nic)
      slowest = std::min(slowest, exception.nic->bytes_per_second *
                                      (given.calibration->synchronous ? tcp_share : 1));
  return reached / slowest;
}

/// Is a reduce-scatter an all-reduce, as PyTorch's Gloo has it? Ranks of ddpsim's own, which a
/// calibration is of unless it says torch, send around half a ring.
bool scatters_by_all_reduce(const CalibratedCluster& cluster) {
  const bool is_gloo = cluster.device.synchronous || cluster.through_host ||
                       cluster.collectives == CollectiveModel::gloo;
  return is_gloo && (!cluster.calibration || cluster.calibration->backend.starts_with("torch"));
}

/// A factor of 1 leaves it as it is, to the tick.
Duration changed(Duration part, double factor) {
  return factor == 1 ? part : scaled(part, factor);
}

}  // namespace

AllReduceTable growing(AllReduceTable table) {
  for (std::size_t i = table.size(); i-- > 1;)
    table[i - 1].second = std::min(table[i - 1].second, table[i].second);
  return table;
}

Duration table_time(const AllReduceTable& table, Bytes size) {
  if (table.empty()) throw std::invalid_argument("an all-reduce table has no entries");
  const double bytes = static_cast<double>(std::max<std::int64_t>(size.count, 0));
  const auto in_proportion = [&](const auto& point) {
    return scaled(point.second, bytes / static_cast<double>(point.first.count));
  };
  if (table.size() == 1) return in_proportion(table.front());
  if (size > table.back().first) return table_time_beyond(table, size);
  const auto above = std::upper_bound(table.begin(), table.end(), size,
                                      [](Bytes s, const auto& entry) { return s < entry.first; });
  const auto right =
      std::clamp<std::size_t>(static_cast<std::size_t>(above - table.begin()), 1, table.size() - 1);
  const auto& [low_size, low] = table[right - 1];
  const auto& [high_size, high] = table[right];
  const double width = static_cast<double>((high_size - low_size).count);
  const double share = (bytes - static_cast<double>(low_size.count)) / width;
  const Duration line = low + scaled(std::max(high - low, Duration::zero()), share);
  return size < table.front().first ? std::max(line, in_proportion(table.front())) : line;
}

CollectiveLaw::CollectiveLaw(const CalibratedCluster& given,
                             const std::optional<NvlsTreeSizes>& known)
    : ranks_(given.ranks()), scatters_by_all_reduce_(scatters_by_all_reduce(given)) {
  const CalibratedCluster cluster = with_slowest_nics(with_measured_link(given));
  channels_ = who_takes_sms(cluster);
  const Link& link = deciding_link(cluster);
  switch (law_of(cluster)) {
    case CollectiveModel::nccl:
      if (cluster.device.compute_capability == 0)
        throw std::invalid_argument("NCCL's time model needs a CUDA device");
      law_ = PortLaw(cluster, fitted_ports(), known);
      return;
    case CollectiveModel::table:
      if (link.all_reduce.empty()) throw std::invalid_argument("the link has no all_reduce table");
      if (link.table_ranks == 1 && ranks_ > 1)
        throw std::invalid_argument("the link's all-reduces are of one rank: nothing crossed it");
      law_ = growing(link.all_reduce);
      streamed_ = streamed_table(given);
      table_ranks_ = link.table_ranks;
      over_nics_ = over_slow_nics(given, link);
      for (const AllReduceTable& table : {link.all_reduce, streamed_})
        for (const auto& [size, time] : table)
          table_peak_.bytes_per_second = std::max(
              table_peak_.bytes_per_second, static_cast<double>(size.count) / in_seconds(time));
      if (given.calibration && ranks_ > 1) take_measured(*given.calibration);
      return;
    case CollectiveModel::gloo:
      if (nccl_knows(cluster) && !cluster.through_host)
        throw std::invalid_argument("Gloo's collectives run on hosts: they need a CPU");
      law_ = GlooLaw(cluster);
      channels_.reset();
      return;
    case CollectiveModel::automatic:
    case CollectiveModel::alpha_beta:
      law_ = ring_law(cluster);
      return;
  }
}

CollectiveCost CollectiveLaw::from_ports(const PortLaw& law, Collective collective,
                                         Bytes size) const {
  const PortLaw::Price price = law.chosen(collective, size);
  CollectiveCost cost;
  cost.latency = price.latency;
  cost.filling = price.filling;
  cost.transfer = price.transfer;
  cost.channels = price.choice.channels;
  cost.choice = price.choice;
  return cost;
}

CollectiveCost CollectiveLaw::from_ring(const RingLaw& ring, Bytes size) const {
  const double n = ranks_, steps = 2 * (n - 1);
  CollectiveCost cost;
  cost.latency = scaled(ring.latency, steps);
  cost.transfer =
      from_seconds(steps / n * static_cast<double>(size.count) / ring.bandwidth.bytes_per_second);
  cost.choice.algorithm = NcclAlgorithm::ring;
  cost.choice.nics = static_cast<std::int16_t>(ring.nics);
  cost.choice.bound = cost.latency > cost.transfer ? CollectiveBound::latency : ring.narrowest;
  return cost;
}

CollectiveCost CollectiveLaw::from_gloo(const GlooLaw& law, Bytes size) {
  const GlooLaw::Price price = law.all_reduce(size);
  CollectiveCost cost;
  cost.latency = price.latency;
  cost.transfer = price.transfer;
  cost.choice = price.choice;
  return cost;
}

CollectiveCost CollectiveLaw::from_table(const AllReduceTable& table, Bytes size) const {
  const Duration time = table_time(table, size);
  CollectiveCost cost;
  cost.transfer =
      std::min(time, streamed_.empty() ? size / table_peak_
                                       : std::max(size / table_peak_, table_time(streamed_, size)));
  cost.latency = time - cost.transfer;
  cost.transfer = changed(cost.transfer, over_nics_);
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
  if (const auto* ports = std::get_if<PortLaw>(&law_))
    cost = from_ports(*ports, Collective::all_reduce, size);
  else if (const auto* gloo = std::get_if<GlooLaw>(&law_))
    cost = from_gloo(*gloo, size);
  else if (const auto* ring = std::get_if<RingLaw>(&law_))
    cost = from_ring(*ring, size);
  else
    cost = from_table(std::get<AllReduceTable>(law_), size);
  return priced(cost, Collective::all_reduce, size);
}

CollectiveCost CollectiveLaw::priced(CollectiveCost cost, Collective collective, Bytes size) const {
  const double n = ranks_;
  cost.latency = std::max(cost.latency + call_overhead, Duration::zero());
  cost.filling = std::min(cost.filling, cost.latency);
  if (channels_ && !cost.choice.protocol && !cost.choice.copy_engines)
    cost.channels = channels_->choose(collective, size).channels;
  if (cost.transfer > Duration::zero())
    cost.bus.bytes_per_second =
        2 * (n - 1) / n * static_cast<double>(size.count) / in_seconds(cost.transfer);
  const Duration filling = changed(cost.filling, change.filling);
  cost.latency = filling + changed(cost.latency - cost.filling, change.latency);
  cost.filling = filling;
  cost.transfer = changed(cost.transfer, change.transfer);
  return cost;
}

/// Behind the last size of a table come those of the all-reduces' table, at what the law says of
/// them, in proportion to what was measured last.
void CollectiveLaw::take_measured(const Calibration& calibration) {
  MeasuredCollectives measured(calibration.collectives);
  for (std::size_t i = 0; i < measured.tables().size(); ++i) {
    const CollectiveTable table = measured.tables()[i];
    const auto& [last, time] = table.times.back();
    const int ranks = std::min(table.ranks, ranks_);
    const double over_law =
        in_seconds(time) / in_seconds(by_law(table.operation, last, ranks).time());
    for (const auto& [size, all_reduce] : std::get<AllReduceTable>(law_))
      if (size > last)
        measured.extend(i, size, scaled(by_law(table.operation, size, ranks).time(), over_law));
  }
  measured_ = std::move(measured);
}

CollectiveCost CollectiveLaw::of(Operation operation, Bytes payload, int ranks) const {
  if (ranks_ == 1 || ranks == 1) return {};
  const int among = operation == Operation::send_receive ? 2
                    : ranks > 0                          ? std::min(ranks, ranks_)
                                                         : ranks_;
  if (operation == Operation::all_reduce && among == ranks_) return all_reduce(payload);
  if (const CollectiveTable* table = measured_.find(operation, among))
    return priced(as_measured(*table, payload, among), kind_of(operation),
                  operation == Operation::all_gather ? among * payload : payload);
  return by_law(operation, payload, among);
}

CollectiveCost CollectiveLaw::as_measured(const CollectiveTable& table, Bytes payload,
                                          int ranks) const {
  const Duration time = table_time(table.times, payload);
  CollectiveCost cost;
  cost.transfer = std::min(time, payload / table.peak);
  cost.latency = time - cost.transfer;
  cost.transfer = changed(cost.transfer, over_nics_);
  if (table.ranks != ranks) {
    // As of a ring: of an all-gather's payload every rank sends n - 1 times as much, else (n - 1) /
    // n of it.
    const double n = ranks, measured = table.ranks;
    const double steps = (n - 1) / (measured - 1);
    const bool gathers = table.operation == Operation::all_gather;
    cost.latency = scaled(cost.latency, steps);
    cost.transfer = scaled(cost.transfer, gathers ? steps : steps * measured / n);
  }
  return cost;
}

CollectiveCost CollectiveLaw::by_law(Operation operation, Bytes payload, int ranks) const {
  const auto* ports = std::get_if<PortLaw>(&law_);
  if (operation == Operation::send_receive) {
    if (ports != nullptr)
      return priced(from_ports(*ports, Collective::broadcast, payload), Collective::broadcast,
                    payload);
    // In a broadcast between two ranks half of the bytes cross the link.
    return by_law(Operation::broadcast, 2 * payload, 2);
  }
  if (ranks < ranks_) {
    // A smaller ring over the same links: 2 (n - 1) steps, 2 (n - 1) / n of the bytes.
    CollectiveCost cost = by_law(operation, payload, ranks_);
    const double n = ranks, all = ranks_;
    const double steps = (n - 1) / (all - 1);
    cost.latency = scaled(cost.latency, steps);
    cost.filling = scaled(cost.filling, steps);
    cost.transfer = scaled(cost.transfer, steps * all / n);
    return cost;
  }
  if (operation == Operation::all_reduce) return all_reduce(payload);
  if (operation == Operation::reduce_scatter && scatters_by_all_reduce_) return all_reduce(payload);
  const Bytes moved = operation == Operation::all_gather ? ranks_ * payload : payload;
  if (ports != nullptr)
    return priced(from_ports(*ports, kind_of(operation), moved), kind_of(operation), moved);
  CollectiveCost cost = all_reduce(moved);
  cost.latency = cost.latency / 2;
  cost.transfer = cost.transfer / 2;
  return cost;
}

Duration CollectiveLaw::broadcast(Bytes size) const {
  if (ranks_ == 1) return {};
  if (const auto* ports = std::get_if<PortLaw>(&law_))
    return ports->chosen(Collective::broadcast, size).time();
  if (const CollectiveTable* table = measured_.find(Operation::broadcast, ranks_))
    return as_measured(*table, size, ranks_).time();
  return (all_reduce(size).time() - call_overhead) / 2;
}

std::optional<NvlsTreeSizes> CollectiveLaw::nvls_tree_sizes() const {
  const auto* ports = std::get_if<PortLaw>(&law_);
  return ports ? std::optional(ports->nvls_tree_sizes()) : std::nullopt;
}

const char* CollectiveLaw::name() const {
  if (std::holds_alternative<PortLaw>(law_)) return "nccl";
  if (std::holds_alternative<GlooLaw>(law_)) return "gloo";
  return std::holds_alternative<RingLaw>(law_) ? "alpha-beta" : "table";
}

}  // namespace ddpsim
