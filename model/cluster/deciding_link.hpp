#pragma once

#include "model/cluster/cluster.hpp"

namespace ddpsim {

/// What joins the ranks where it counts most: the nodes, or the ranks of the only node.
inline const Link& deciding_link(const Cluster& cluster) {
  return cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
}

}  // namespace ddpsim
