#include "model/cost/collective_ports.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

/// Compute capabilities of Blackwell's data-centre GPUs: from the first to the first behind them.
constexpr int first_with_own_cards = 100, first_in_slots_again = 120;

/// Blackwell Ultra, beside whose GPUs sit ConnectX-8 cards with lanes of PCIe 6.
constexpr int first_with_pcie6 = 103;

double line_rate(const Link& link) {
  return (link.bandwidth.bytes_per_second > 0 ? link.bandwidth : link.nccl_bandwidth)
      .bytes_per_second;
}

/// From a GPU to the NICs: the link inside the node if that is PCIe, else its own PCIe x16.
double pcie_rate(const Cluster& cluster) {
  if (cluster.intra_node.kind == LinkKind::pcie && line_rate(cluster.intra_node) > 0)
    return line_rate(cluster.intra_node);
  return pcie_line_rate(cluster.device.compute_capability);
}

/// The busiest node of a double tree.
double tree_between(int nodes) {
  if (nodes == 2) return 1;
  return nodes == 3 ? 1.5 : 2;
}

/// The ports of a node of so many ranks.
Ports ports_of_node(const Cluster& cluster, int ranks, Collective collective,
                    NcclAlgorithm algorithm) {
  const double g = ranks, ring = ring_share(cluster, collective);
  // In a ring between nodes each GPU's port carries what does not leave the node there: the mean
  // over the GPUs, for rings leave by several.
  double inside = cluster.nodes > 1 ? ring * (1 - 1 / g) : ring, between = ring;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      break;
    case NcclAlgorithm::tree:
      inside = 2 * (g - 1) / g;
      between = tree_between(cluster.nodes);
      break;
    case NcclAlgorithm::nvls:
    case NcclAlgorithm::nvls_tree:
      inside = collective == Collective::all_reduce ? 1 + 1 / g : 1;
      between = tree_between(cluster.nodes);
      break;
  }
  Ports ports;
  const bool inner = ranks > 1, outer = cluster.nodes > 1;
  const LinkKind kind = cluster.intra_node.kind;
  const bool own_way = outer && (kind == LinkKind::nvlink || !inner);
  double loaded = 0;
  if (through_host(cluster) && inner) {
    // GPUs that may not copy to each other do so through the host's memory: twice over the bus.
    // Between nodes what is sent to the NICs and comes from them is in that memory too, so every
    // GPU loads what it loads in one node.
    loaded = outer ? std::max(inside, ring) : inside;
    // A share that the link says is of what goes from GPU to GPU, and not of each crossing.
    inside = cluster.intra_node.carries > 0 ? loaded : 2 * loaded;
  } else if (outer && !own_way) {
    inside += between / g;  // what goes to the NICs shares a PCIe port with what goes to other GPUs
  }
  // Where nobody said how fast the inside of a node is, the NICs alone bound what leaves it.
  const bool known = !outer || line_rate(cluster.intra_node) > 0;
  ports[0] = {CollectiveBound::port,       kind,
              inner && known ? inside : 0, line_rate(cluster.intra_node),
              inner && known ? loaded : 0, cluster.intra_node.carries};
  ports[1] = {CollectiveBound::pcie, LinkKind::pcie, own_way ? between / g : 0, pcie_rate(cluster)};
  ports[2] = {CollectiveBound::nic,
              cluster.inter_node.kind,
              outer ? between / nics_of_node(cluster, ranks) : 0,
              line_rate(cluster.inter_node),
              0,
              cluster.inter_node.carries,
              slot_line_rate(cluster)};
  return ports;
}

}  // namespace

double pcie_line_rate(int compute_capability) {
  if (compute_capability >= first_with_pcie6 && compute_capability < first_in_slots_again)
    return 121e9;
  return (compute_capability >= 90 ? 63.0 : compute_capability >= 80 ? 31.5 : 15.75) * 1e9;
}

double slot_line_rate(const Cluster& cluster) {
  const int capability = cluster.device.compute_capability;
  if (capability >= first_with_own_cards && capability < first_in_slots_again) return 0;
  switch (cluster.inter_node.kind) {
    case LinkKind::ethernet:
    case LinkKind::infiniband:
      return std::max(pcie_rate(cluster), pcie_line_rate(capability));
    case LinkKind::plain:
    case LinkKind::nvlink:
    case LinkKind::pcie:
      return 0;
  }
  return 0;
}

double ring_share(const Cluster& cluster, Collective collective) {
  const double n = cluster.ranks();
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
      return 1;
  }
  return 1;
}

bool through_host(const Cluster& cluster) {
  return cluster.intra_node.kind == LinkKind::pcie && !cluster.device.peer_to_peer &&
         !cluster.device.synchronous && !cluster.through_host;
}

Ports ports_of(const Cluster& cluster, Collective collective, NcclAlgorithm algorithm) {
  const RanksPerNode& nodes = cluster.ranks_per_node;
  Ports ports = ports_of_node(cluster, nodes.largest(), collective, algorithm);
  if (nodes.equal()) return ports;
  // Bytes through a port grow or fall with the ranks of a node, so an extreme is the narrowest.
  const Ports smallest = ports_of_node(cluster, nodes.smallest(), collective, algorithm);
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (smallest[i].seconds() > ports[i].seconds()) ports[i] = smallest[i];
  return ports;
}

}  // namespace ddpsim
