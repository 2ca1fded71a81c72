#pragma once

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

}  // namespace ddpsim
