#include "model/cost/nccl_choice.hpp"

// Worked example, four nodes of eight H100 and InfiniBand NICs. Releases before 2.28 reckon 95.6 us
// for 2 MiB by a tree with LL128 and 92.2 us by an NVLS tree: they take the latter from there on,
// and two public logs show the step, from 82 us for 1 MiB to 132 us for 2 MiB, from 93 to 156 us.
// By the bytes and the steps the tree would have taken 95 us. 2.28 reckons 20.9 us, not 14, for an
// NVLS tree's step between nodes, and changes over at 8 MiB.

namespace ddpsim {
namespace {

constexpr double least = 64.0 * 1024, most = 512.0 * 1024 * 1024;

/// The cluster on links as sold, as NCCL counts them in GB/s: 18 NVLinks of Hopper or Blackwell,
/// NICs of 400 Gbit/s, one for each GPU. (No earlier GPU has NVLS.)
Cluster as_sold(Cluster cluster) {
  cluster.intra_node.bandwidth =
      gigabytes_per_second(18 * (cluster.device.compute_capability >= 100 ? 40.1 : 20.6));
  cluster.intra_node.nccl_bandwidth = {};
  cluster.inter_node.bandwidth = gigabytes_per_second(50);
  cluster.inter_node.nccl_bandwidth = {};
  cluster.inter_node.nics = cluster.ranks_per_node.largest();
  return cluster;
}

}  // namespace

NvlsTreeSizes nvls_tree_sizes(const Cluster& cluster) {
  const bool possible = cluster.nodes > 1 && cluster.ranks_per_node.equal() &&
                        cluster.device.compute_capability >= 90 &&
                        cluster.intra_node.kind == LinkKind::nvlink && cluster.intra_node.nvswitch;
  if (!possible) return {};
  const NcclLaw law(nccl_system(as_sold(cluster)));
  const auto taken = [&](double bytes) {
    return law.choose(Collective::all_reduce, Bytes{static_cast<std::int64_t>(bytes)}).algorithm ==
           NcclAlgorithm::nvls_tree;
  };
  NvlsTreeSizes sizes;
  for (sizes.from = least; !taken(sizes.from); sizes.from *= 2)
    if (sizes.from >= most) return {};
  for (sizes.to = sizes.from; sizes.to < most && taken(sizes.to); sizes.to *= 2) continue;
  double below = sizes.from / 2;  // where it changes over, to a part in 250
  for (int halvings = 0; sizes.from > least && halvings < 8; ++halvings) {
    const double middle = 0.5 * (below + sizes.from);
    (taken(middle) ? sizes.from : below) = middle;
  }
  return sizes;
}

}  // namespace ddpsim
