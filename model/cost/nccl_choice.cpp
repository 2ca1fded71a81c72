#include "model/cost/nccl_choice.hpp"

// Worked example, four nodes of eight H100 and InfiniBand NICs. Releases before 2.28 reckon 95.6 us
// for 2 MiB by a tree with LL128 and 92.2 us by an NVLS tree: they take the latter from there on,
// and two public logs show the step, from 82 us for 1 MiB to 132 us for 2 MiB, from 93 to 156 us.
// By the bytes and the steps the tree would have taken 95 us. 2.28 reckons 20.9 us, not 14, for an
// NVLS tree's step between nodes, and changes over at 8 MiB.

namespace ddpsim {
namespace {

/// Data sheets: NVLink of the device's generation, per direction; as NCCL counts it, GB/s.
double usual_nvlink(int capability) {
  if (capability >= 100) return 18 * 40.1;
  if (capability >= 90) return 18 * 20.6;
  return (capability >= 80 ? 12 : 6) * 20.0;
}

/// PCIe x16 of the device's generation, as NCCL counts it, GB/s.
double usual_pcie(int capability) {
  if (capability >= 90) return 48;
  return capability >= 80 ? 24 : 12;
}

/// A NIC of the device's time: 100, 200 and 400 Gbit/s, GB/s.
double usual_nic(int capability) {
  if (capability >= 90) return 50;
  return capability >= 80 ? 25 : 12.5;
}

/// The algorithm of the least estimate, among the protocols that are allowed.
NcclAlgorithm least_estimate(const NcclLaw& law, Bytes size, std::optional<NcclProtocol> allowed) {
  std::optional<NcclEstimate> best;
  for (const NcclAlgorithm algorithm : all_nccl_algorithms)
    for (const NcclProtocol protocol : all_nccl_protocols) {
      if (allowed && protocol != *allowed) continue;
      const auto found = law.estimate(Collective::all_reduce, algorithm, protocol, size);
      if (found && (!best || found->time < best->time)) best = found;
    }
  return best ? best->algorithm : NcclAlgorithm::ring;
}

/// The cluster on links as sold, with a NIC for each GPU of an NVLink island.
Cluster as_sold(Cluster cluster) {
  const int capability = cluster.device.compute_capability;
  const bool nvlink = cluster.intra_node.kind == LinkKind::nvlink;
  cluster.intra_node.bandwidth =
      gigabytes_per_second(nvlink ? usual_nvlink(capability) : usual_pcie(capability));
  cluster.intra_node.nccl_bandwidth = {};
  cluster.inter_node.bandwidth = gigabytes_per_second(usual_nic(capability));
  cluster.inter_node.nccl_bandwidth = {};
  cluster.inter_node.nics = nvlink ? cluster.ranks_per_node : 1;
  return cluster;
}

}  // namespace

NcclChoice::NcclChoice(const Cluster& cluster) {
  const NcclLaw law(nccl_system(as_sold(cluster)));
  const auto chosen = [&](double bytes) {
    return least_estimate(law, Bytes{static_cast<std::int64_t>(bytes)}, cluster.forced.protocol);
  };
  constexpr double least = 1024, most = 512.0 * 1024 * 1024;
  const auto begin = [&](double from, NcclAlgorithm algorithm) {
    if (count < most_ranges) ranges[count++] = {from, algorithm};
  };
  begin(0, chosen(least));
  for (double size = least; size < most; size *= 2) {
    const NcclAlgorithm next = chosen(2 * size);
    if (next == ranges[count - 1].algorithm) continue;
    double low = size, high = 2 * size;
    for (int halvings = 0; halvings < 8; ++halvings) {
      const double middle = 0.5 * (low + high);
      (chosen(middle) == next ? high : low) = middle;
    }
    begin(high, next);
  }
}

}  // namespace ddpsim
