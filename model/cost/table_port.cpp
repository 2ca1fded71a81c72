#include "model/cost/table_port.hpp"

#include <algorithm>

#include "model/cluster/nvlink.hpp"
#include "model/cost/port_law.hpp"

namespace ddpsim {
namespace {

int ranks_of_table(const Cluster& cluster) {
  const int ranks = cluster.intra_node.table_ranks;
  return ranks > 0 ? ranks : cluster.ranks_per_node.largest();
}

/// What so many bytes are on the bus, as nccl-tests counts.
double on_bus(Bytes size, int ranks) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(size.count);
}

bool may_add_up(const Cluster& cluster) {
  const Link& link = cluster.intra_node;
  return link.kind == LinkKind::nvlink && link.nvswitch && link.table_nodes <= 1 &&
         link.bandwidth.bytes_per_second > 0 && ranks_of_table(cluster) > 1 &&
         nvlink_rate(cluster.device.compute_capability).bytes_per_second > 0;
}

}  // namespace

double port_share_of_bus(const Cluster& cluster) {
  if (!may_add_up(cluster)) return 1;
  Cluster node = cluster;
  node.nodes = 1;
  node.ranks_per_node = ranks_of_table(cluster);
  node.forced = {};
  node.intra_node.bandwidth = nvlink_rate(cluster.device.compute_capability);
  node.intra_node.nccl_bandwidth = {};
  node.intra_node.carries = 0;
  const PortLaw law(node);
  const auto bus = [&](NcclAlgorithm algorithm) {
    const auto price = law.price(Collective::all_reduce, algorithm, NcclProtocol::simple, GiB);
    return price ? on_bus(GiB, node.ranks()) / in_seconds(price->transfer) : 0;
  };
  const double ring = bus(NcclAlgorithm::ring), nvls = bus(NcclAlgorithm::nvls);
  if (nvls <= ring) return 1;
  const double measured = cluster.intra_node.bandwidth.bytes_per_second;
  return std::max(std::min(measured, ring), measured * ring / nvls) / measured;
}

Bandwidth reached_on_bus(const AllReduceTable& table, int ranks) {
  Bandwidth reached;
  for (const auto& [size, time] : table)
    reached.bytes_per_second =
        std::max(reached.bytes_per_second, on_bus(size, ranks) / in_seconds(time));
  return reached;
}

bool is_about(Bandwidth rate, Bandwidth reached) {
  constexpr double least = 0.8, most = 1.25;
  const double ratio = rate.bytes_per_second / reached.bytes_per_second;
  return ratio >= least && ratio <= most;
}

bool rate_is_of_table(const Cluster& cluster) {
  constexpr int first_with_nvls = 90;
  const Link& link = cluster.intra_node;
  if (!may_add_up(cluster) || cluster.device.compute_capability < first_with_nvls) return false;
  return is_about(link.bandwidth, reached_on_bus(link.all_reduce, ranks_of_table(cluster)));
}

}  // namespace ddpsim
