#pragma once

#include "model/cost/nccl_law.hpp"

/// Clusters as NCCL's search sees them.
namespace ddpsim::nccl_nodes {

inline double in_gigabytes(Bandwidth rate) {
  return rate.bytes_per_second * 1e-9;
}

inline Cluster node_of(int ranks, int capability, LinkKind kind, double gigabytes) {
  Cluster cluster;
  cluster.ranks_per_node = ranks;
  cluster.device.compute_capability = capability;
  cluster.intra_node.kind = kind;
  cluster.intra_node.nccl_bandwidth = gigabytes_per_second(gigabytes);
  cluster.intra_node.nvswitch = kind == LinkKind::nvlink;
  return cluster;
}

/// NVLink as NCCL counts it: links times GB/s of one.
inline Cluster h100_node(int ranks) {
  return node_of(ranks, 90, LinkKind::nvlink, 18 * 20.6);
}

inline Cluster nodes_of(int nodes, Cluster node, LinkKind kind, double nic_gigabytes,
                        int nics = 0) {
  node.nodes = nodes;
  node.inter_node.kind = kind;
  node.inter_node.bandwidth = gigabytes_per_second(nic_gigabytes);
  node.inter_node.nics = nics;
  return node;
}

}  // namespace ddpsim::nccl_nodes
