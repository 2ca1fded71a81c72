#pragma once

#include <algorithm>

#include "model/cluster/cluster.hpp"

namespace ddpsim {

/// What joins the ranks where it counts most: the nodes, or the ranks of the only node.
inline const Link& deciding_link(const Cluster& cluster) {
  return cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
}

/// The ranks of the smallest node when the link's all-reduces were measured; 0: not known.
inline int smallest_measured_node(const Link& link) {
  if (link.table_nodes < 2) return 0;
  return link.table_smallest_node > 0 ? link.table_smallest_node
                                      : link.table_ranks / link.table_nodes;
}

/// How many times longer the transfers of the network's table take where nodes have fewer ranks
/// than those that were measured had: a ring goes over as many NICs of a node as it has ranks, so
/// fewer carry the same bytes. Where nobody says how many NICs a node has, and it is not Ethernet,
/// each rank is taken to have one.
inline double table_on_narrower_nodes(const Cluster& cluster) {
  const Link& network = cluster.inter_node;
  const int measured = smallest_measured_node(network);
  const int ranks = cluster.ranks_per_node.smallest();
  if (cluster.nodes == 1 || measured <= ranks) return 1;
  const int said = network.kind == LinkKind::ethernet ? std::max(network.nics, 1) : network.nics;
  const int nics = said > 0 ? said : measured;
  return static_cast<double>(std::min(measured, nics)) / std::min(ranks, nics);
}

}  // namespace ddpsim
