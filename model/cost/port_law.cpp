#include "model/cost/port_law.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

// Worked example: eight H100 on an NVSwitch of 450 GB/s ports, 25 MiB.
//
//     ring, Simple   2 x 7/8 = 1.75 of the bytes through each port at 0.80 x 450 = 360 GB/s:
//                    127.4 us, after 3 us and 2 x 56 us of steps: 242.4 us
//     NVLS           1 + 1/8 of the bytes at 0.635 x 450 = 285.8 GB/s: 103.2 us, after 3 us and
//                    2 x 25 us: 156.2 us, so NVLS runs

namespace ddpsim {
namespace {

// Fitted by `fit_ports --fit` (tests/experiments/fit_ports.cpp) on the public sweeps of
// tests/data/nccl-tests and tests/data/clusters, 459 rows of 19 sources, and rounded; the same
// program prints the errors, also of sources left out of the fit. Between nodes and over PCIe LL
// and LL128 follow from Simple: half and 15/16 of what crosses is data. The start is bounded by
// what the smallest messages on Hopper take.
constexpr PortConstants fitted{.share = {{{0.50, 0.94, 1.00},    // plain: bandwidth as measured
                                          {0.40, 0.71, 0.80},    // NVLink
                                          {0.40, 0.75, 0.80},    // PCIe
                                          {0.48, 0.90, 0.96},    // Ethernet
                                          {0.46, 0.86, 0.92}}},  // InfiniBand
                               .nvls = 0.635,
                               .stretch = {1.0, 1.9, 2.0},
                               .tree_stretch = 1.5,
                               .start_us = 3.0};

/// How much longer steps take before Hopper, whose figures NCCL's are. NCCL says so of the plateau
/// of the generations before Ampere: 1.9 instead of 1.4 (src/graph/tuning.cc). The sweeps want the
/// same of Ampere and of every step: fitted by itself the factor comes out as 1.35.
constexpr double before_hopper = 1.9 / 1.4;

template <class Enumerator>
constexpr std::size_t index_of(Enumerator value) {
  return static_cast<std::size_t>(value);
}

/// A tree's share of a ring's bandwidth as NCCL counts (src/graph/tuning.cc): 0.92, and LL is
/// divided by 3.8 where a ring's is halved. Between nodes whole chunks lose next to nothing.
constexpr PortConstants::PerProtocol tree_share{0.92 * 2 / 3.8, 0.92, 0.92};
constexpr double wide_tree_share = 0.98;

struct Port {
  CollectiveBound name = CollectiveBound::port;
  LinkKind kind = LinkKind::plain;
  double per_byte = 0;  ///< bytes that cross it for a byte of the collective
  double rate = 0;      ///< line rate, bytes/s

  double seconds() const { return per_byte > 0 ? per_byte / rate : 0; }
};
using Ports = std::array<Port, 3>;  ///< inside the node, GPU to NICs, NICs

double line_rate(const Link& link) {
  return (link.bandwidth.bytes_per_second > 0 ? link.bandwidth : link.nccl_bandwidth)
      .bytes_per_second;
}

/// From a GPU to the NICs: the link inside the node if that is PCIe, else PCIe x16 of the device's
/// generation (data sheets): 5 from Hopper, 4 from Ampere, 3 before.
double pcie_rate(const Cluster& cluster) {
  if (cluster.intra_node.kind == LinkKind::pcie && line_rate(cluster.intra_node) > 0)
    return line_rate(cluster.intra_node);
  const int capability = cluster.device.compute_capability;
  return (capability >= 90 ? 63.0 : capability >= 80 ? 31.5 : 15.75) * 1e9;
}

/// Bytes of a ring through each of its hops for a byte of the collective.
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

/// The busiest node of a double tree.
double tree_between(int nodes) {
  if (nodes == 2) return 1;
  return nodes == 3 ? 1.5 : 2;
}

Ports ports_of(const Cluster& cluster, Collective collective, NcclAlgorithm algorithm) {
  const double g = cluster.ranks_per_node, ring = ring_share(cluster, collective);
  // Of a ring between nodes each GPU's port carries what does not leave the node there: the mean
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
  const bool inner = cluster.ranks_per_node > 1, outer = cluster.nodes > 1;
  const LinkKind kind = cluster.intra_node.kind;
  // GPUs that may not copy to each other do so through the host's memory: twice over the bus.
  if (kind == LinkKind::pcie && !cluster.device.peer_to_peer) inside *= 2;
  // What goes to the NICs shares a PCIe port with what goes to other GPUs.
  const bool own_way = outer && (kind == LinkKind::nvlink || !inner);
  if (outer && !own_way) inside += between / g;
  // Where nobody said how fast the inside of a node is, the NICs alone bound what leaves it.
  const bool known = !outer || line_rate(cluster.intra_node) > 0;
  ports[0] = {CollectiveBound::port, kind, inner && known ? inside : 0,
              line_rate(cluster.intra_node)};
  ports[1] = {CollectiveBound::pcie, LinkKind::pcie, own_way ? between / g : 0, pcie_rate(cluster)};
  ports[2] = {CollectiveBound::nic, cluster.inter_node.kind,
              outer ? between / nics_per_node(cluster) : 0, line_rate(cluster.inter_node)};
  return ports;
}

/// `usual`: the kind of link whose steps NCCL's figures are.
StepTimes steps_of(const Link& link, LinkKind usual) {
  const double reference = in_us(usual_latency(usual)), latency = in_us(link.latency);
  return {std::min(1.0, latency / reference), std::max(0.0, latency - reference)};
}

/// NCCL's view of the cluster without what its search made of bandwidths: which algorithms there
/// are depends on what is wired to what, not on how fast it is.
NcclSystem wired(const Cluster& cluster) {
  NcclSystem system = nccl_system(cluster);
  const bool nvlink = cluster.intra_node.kind == LinkKind::nvlink && cluster.ranks_per_node > 1;
  for (NcclGraph* graph : {&system.ring, &system.tree}) {
    graph->channels = std::max(1, graph->channels);
    graph->nvlink = nvlink;
  }
  const bool nvls =
      nvlink && cluster.intra_node.nvswitch && cluster.device.compute_capability >= 90;
  const int heads = cluster.nodes > 1 ? std::min(nics_per_node(cluster), cluster.ranks_per_node)
                                      : cluster.ranks_per_node;
  system.nvls.channels = nvls ? heads : 0;
  system.nvls.nvlink = nvlink;
  if (nvls && system.nvls_channels == 0) system.nvls_channels = 16;
  return system;
}

/// Is it a combination that the scenario rules out?
bool is_forced_out(const ForcedChoice& forced, NcclAlgorithm algorithm, NcclProtocol protocol) {
  return (forced.algorithm && *forced.algorithm != algorithm) ||
         (forced.protocol && *forced.protocol != protocol);
}

}  // namespace

const PortConstants& fitted_ports() {
  return fitted;
}

PortLaw::PortLaw(const Cluster& cluster, const PortConstants& constants)
    : system_(wired(cluster)),
      nics_(cluster.nodes > 1 ? nics_per_node(cluster) : 0),
      most_channels_(cluster.forced.channels) {
  if (cluster.ranks() == 1) return;
  const StepTimes inside =
      steps_of(cluster.intra_node, system_.ring.nvlink ? LinkKind::nvlink : LinkKind::pcie);
  const double older = cluster.device.compute_capability < 90 ? before_hopper : 1;
  const StepTimes between = steps_of(cluster.inter_node, LinkKind::infiniband);
  for (const Collective collective : all_collectives) {
    Candidates& candidates = candidates_[index_of(collective)];
    // What is forced upon all-reduces says nothing to collectives that do not have it.
    const bool all_reduce = collective == Collective::all_reduce;
    const ForcedChoice forced =
        all_reduce ? cluster.forced : ForcedChoice{std::nullopt, cluster.forced.protocol, {}};
    for (const NcclAlgorithm algorithm : all_nccl_algorithms)
      for (const NcclProtocol protocol : all_nccl_protocols) {
        if (!nccl_offers(system_, collective, algorithm, protocol)) continue;
        if (is_forced_out(forced, algorithm, protocol)) continue;
        const bool tree = algorithm == NcclAlgorithm::tree;
        const bool nvls = algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
        const std::size_t p = index_of(protocol);
        Candidate candidate{algorithm, protocol};
        // As NCCL's plateau, the stretch is less of a tree's chunks than of a ring's.
        const bool wide_tree = tree && protocol == NcclProtocol::simple && cluster.nodes > 1;
        const double stretch = wide_tree ? constants.tree_stretch : older * constants.stretch[p];
        const double of_ring = wide_tree ? wide_tree_share : tree_share[p];
        const double steps =
            nccl_latency_us(system_, collective, algorithm, protocol, inside, between);
        candidate.latency = 1e-6 * (constants.start_us + stretch * steps);
        const auto bound = [&](CollectiveBound name, double seconds) {
          if (seconds <= candidate.seconds_per_byte) return;
          candidate.seconds_per_byte = seconds;
          candidate.bound = name;
        };
        const Ports ports = ports_of(cluster, collective, algorithm);
        for (std::size_t i = 0; i < ports.size(); ++i) {
          const Port& port = ports[i];
          const double share =
              i == 0 && nvls ? constants.nvls : constants.share[index_of(port.kind)][p];
          const double crossing = tree ? port.seconds() / of_ring : port.seconds();
          bound(port.name, crossing / share);
        }
        const double bus = ring_share(cluster, collective);
        if (protocol == NcclProtocol::ll)
          bound(CollectiveBound::sms, bus * 1e-9 / nccl_ll_limit(system_));
        if (most_channels_)
          bound(CollectiveBound::sms, bus * 1e-9 / (*most_channels_ * nccl_channel_limit(system_)));
        if (!(candidate.seconds_per_byte < 1))  // a byte a second: no bandwidth, or next to none
          throw std::invalid_argument("the link between the ranks has no bandwidth");
        candidates.of[candidates.count++] = candidate;
      }
    if (candidates.count == 0)
      throw std::invalid_argument(
          "NCCL does not offer that algorithm and protocol on these links and devices");
  }
}

PortLaw::Price PortLaw::price(const Candidate& candidate, Bytes size) const {
  const double bytes = static_cast<double>(std::max<std::int64_t>(size.count, 0));
  Price price{
      from_seconds(candidate.latency), from_seconds(bytes * candidate.seconds_per_byte), {}};
  int channels = nccl_channels(system_, candidate.algorithm, candidate.protocol, size);
  if (most_channels_) channels = std::min(channels, *most_channels_);
  price.choice = {candidate.algorithm, candidate.protocol, static_cast<std::int16_t>(channels),
                  static_cast<std::int16_t>(nics_),
                  price.latency > price.transfer ? CollectiveBound::latency : candidate.bound};
  return price;
}

PortLaw::Price PortLaw::cheapest(Collective collective, Bytes size) const {
  const Candidates& candidates = candidates_[index_of(collective)];
  if (candidates.count == 0) return {};  // one rank
  const double bytes = static_cast<double>(std::max<std::int64_t>(size.count, 0));
  const Candidate* best = candidates.of.data();
  for (std::size_t c = 1; c < candidates.count; ++c)
    if (candidates.of[c].time(bytes) < best->time(bytes)) best = &candidates.of[c];
  return price(*best, size);
}

std::optional<PortLaw::Price> PortLaw::price(Collective collective, NcclAlgorithm algorithm,
                                             NcclProtocol protocol, Bytes size) const {
  const Candidates& candidates = candidates_[index_of(collective)];
  for (std::size_t c = 0; c < candidates.count; ++c)
    if (candidates.of[c].algorithm == algorithm && candidates.of[c].protocol == protocol)
      return price(candidates.of[c], size);
  return std::nullopt;
}

PortLaw::Narrowest PortLaw::narrowest(const Cluster& cluster, Collective collective,
                                      NcclAlgorithm algorithm) {
  Narrowest narrowest;
  for (const Port& port : ports_of(cluster, collective, algorithm))
    if (port.seconds() > narrowest.seconds_per_byte) narrowest = {port.seconds(), port.name};
  return narrowest;
}

}  // namespace ddpsim
