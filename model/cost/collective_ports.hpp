#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/cluster/cluster.hpp"
#include "model/cost/nccl_law.hpp"

namespace ddpsim {

/// What joins GPUs or nodes, and how much of a collective crosses it.
struct Port {
  CollectiveBound name = CollectiveBound::port;
  LinkKind kind = LinkKind::plain;
  double per_byte = 0;  ///< bytes that cross it for a byte of the collective
  double rate = 0;      ///< line rate, bytes/s
  /// How many of these bytes kernels load from the host's memory.
  double loaded = 0;
  double carries = 0;  ///< of the line rate, by the link; 0: what its kind is known for
  double slot = 0;     ///< line rate of the PCIe slot that it sits in, bytes/s; 0: none is known

  /// At line rate.
  double seconds() const {
    return per_byte > 0 ? per_byte / (slot > 0 ? std::min(rate, slot) : rate) : 0;
  }
};
inline constexpr std::size_t ports_of_a_way = 3;
using Ports = std::array<Port, ports_of_a_way>;  ///< inside the node, GPU to NICs, NICs

/// The ports on a collective's way, each with the bytes that cross it and its line rate by the data
/// sheet: of a GPU to the others of its node, of a GPU to the NICs, and a node's NICs. A ring sends
/// 2 (n-1)/n of an all-reduce through each port, NVLS 1 + 1/g of it through the ports of g GPUs, a
/// double tree up to twice through the NICs of a node (once for two nodes, 1.5 times for three).
/// Where GPUs reach each other through the host's memory, each sends and loads no less than a
/// ring's share through its port, however many nodes there are: the hop in the node is the same. It
/// crosses the port twice, unless the link says what it `carries`: that is of the way from GPU to
/// GPU as a whole. If nodes have unequal numbers of ranks, each port is that of the node where the
/// bytes take longest: the smallest for NICs and the way to them, the largest for what GPUs
/// exchange. Source: NCCL's device code.
Ports ports_of(const Cluster& cluster, Collective collective, NcclAlgorithm algorithm);

/// Bytes per second of the PCIe x16 of a GPU, by its generation (data sheets): 6 of B300 and GB300,
/// else 5 from Hopper, 4 from Ampere, 3 before.
double pcie_line_rate(int compute_capability);

/// Bytes per second of the PCIe slot of a node's NICs, of the generation of its GPUs' PCIe or of
/// the link inside the node, if that is a later one. 0: not known, of a network of no kind, which
/// need not be a card, and of Blackwell's data-centre systems, some of whose cards (ConnectX-8)
/// have lanes of PCIe 6.
double slot_line_rate(const Cluster& cluster);

/// Bytes of a ring through each of its hops for a byte of the collective.
double ring_share(const Cluster& cluster, Collective collective);

/// Do the GPUs of a node copy to each other through the host's memory? Not where collectives run on
/// the hosts (Cluster::through_host).
bool through_host(const Cluster& cluster);

}  // namespace ddpsim
