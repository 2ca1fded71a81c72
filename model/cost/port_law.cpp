#include "model/cost/port_law.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include "model/base/index.hpp"
#include "model/cost/collective_ports.hpp"

// Worked example: eight H100 on an NVSwitch of 450 GB/s ports, 25 MiB.
//
//     ring, Simple   2 x 7/8 = 1.75 of the bytes through each port at 0.79 x 450 = 355.5 GB/s:
//                    129.0 us, after 3 us and 56 us of steps: 188.0 us
//     NVLS           1 + 1/8 of the bytes at 0.635 x 450 = 285.8 GB/s: 103.2 us, after 3 us, 25 us
//                    of steps and 16.5 us until the first 4 MiB are added up: 147.7 us, so NVLS
//                    runs

namespace ddpsim {
namespace {

// Fitted by `fit_ports --fit` (tests/experiments/fit_ports.cpp) on the public sweeps of
// tests/data/nccl-tests and tests/data/clusters (`blackwell` and `in_place`: of
// tests/data/collectives), and rounded; the same program prints the errors, also of sources left
// out of the fit. NVLink's share is bounded so that 1 GiB takes at most 1.35
// times its bytes at line rate, the start by what the smallest messages on Hopper take.
constexpr PortConstants fitted{.nvlink = 0.79,
                               .pcie = 0.82,
                               .network = 0.92,
                               .host = 0.90,
                               .through_host = 2.6e9,
                               .nvls = 0.635,
                               .blackwell = 0.84,
                               .in_place = 0.44,
                               .start_us = 3.0};

/// GPUs up to PCIe 4, those before Hopper: there the kernels that copy through the host's memory,
/// and not its lanes, set the pace, for a load takes a round trip, and few are under way. 2.6 GB/s
/// is the median of eleven public setups of 2.2 to 5 (tests/data/through_host_rates.csv), the same
/// from 8 to 512 MiB and from two to eight GPUs; pinned copies reach 24 GB/s on the same hosts. Of
/// GPUs with PCIe 5 the only public log, of four RTX 5090, has 27 GB/s: what the lanes carry.
constexpr int first_with_pcie5 = 90;

/// The slowest of these setups, and the quickest that anybody published, two RTX 3090 on PCIe 4
/// (scenarios/measured/lizhieffe-large.yaml).
constexpr Bandwidth slowest_host = gigabytes_per_second(2.2),
                    quickest_host = gigabytes_per_second(9.8);

/// What of the bytes that cross a link is data: half with LL, 15/16 with LL128
/// (src/device/prims_ll.h and prims_ll128.h; the rest are flags).
constexpr std::array<double, all_nccl_protocols.size()> data_share{1.0 / 2, 15.0 / 16, 1};

double carried(LinkKind kind, const PortConstants& constants) {
  switch (kind) {
    case LinkKind::plain:
      return 1;
    case LinkKind::nvlink:
      return constants.nvlink;
    case LinkKind::pcie:
      return constants.pcie;
    case LinkKind::ethernet:
    case LinkKind::infiniband:
      return constants.network;
  }
  return 1;
}

bool is_of_shards(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter;
}

/// Blackwell's kernels start later: 11 us to Hopper's 4.5 (src/sym_kernels.cc, symmetric LL).
constexpr double blackwell_start_us = 11 - 4.5;
/// Those of gathers 8.5 us; and in public logs of one GPU in a node there is nothing of it, so it
/// is of NVLink.
constexpr double blackwell_gather_us = 8.5 - 4.5;
double later_on_blackwell_us(const Cluster& cluster, Collective collective) {
  const bool alone = cluster.ranks_per_node.largest() == 1;
  if (alone && is_of_shards(collective)) return 0;
  return collective == Collective::all_gather ? blackwell_gather_us : blackwell_start_us;
}

/// What a kernel reaches of the rate that its data has on a port, as NCCL counts
/// (src/graph/tuning.cc): a tree 0.92 of a ring, and with LL it is divided by 3.8 where a ring's
/// rate is halved; LL128 7/9 of a line within one node, flags and all, which NCCL says of trees and
/// a public log of eight A100 of rings, and a ring 0.92 of it between nodes. Trees of Simple lose
/// nothing in public logs.
double of_kernel(const Cluster& cluster, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const bool tree = algorithm == NcclAlgorithm::tree;
  constexpr double tree_of_ring = 0.92, data_of_ll128 = data_share[index_of(NcclProtocol::ll128)];
  switch (protocol) {
    case NcclProtocol::ll:
      return tree ? tree_of_ring * 2 / 3.8 : 1;
    case NcclProtocol::ll128:
      if (cluster.nodes == 1) return (tree ? tree_of_ring : 1) * 7 / 9 / data_of_ll128;
      return tree ? tree_of_ring : 0.92 / data_of_ll128;
    case NcclProtocol::simple:
      break;
  }
  return 1;
}

/// What NVLS reaches on a generation, of what it does on Hopper: as NCCL has it
/// (src/graph/tuning.cc, nvlsEfficiency: 0.85 and 0.74).
double nvls_of_hopper(const NcclSystem& system) {
  return system.compute_capability >= 100 ? 0.74 / 0.85 : 1;
}

/// Seconds that a byte of a gather, or of a scatter, takes beside what its ring sends: of n steps a
/// rank sends in n - 1, and in the other its kernel copies the rank's own part, or adds it up. All
/// of a node's channels do so at a time: 24 within a node, as NCCL opens on nodes of eight GPUs,
/// and 4 for each NIC.
double own_part(const Cluster& cluster, const NcclSystem& system, std::optional<int> most) {
  constexpr int of_node = 24, of_nic = 4;
  int channels = cluster.nodes == 1 ? of_node : std::min(of_node, of_nic * nics_per_node(cluster));
  if (most) channels = std::min(channels, *most);
  return 1e-9 / (channels * nccl_copy_rate(system) * cluster.ranks());
}

/// What copy engines take for a gather. Of eight GPUs of Hopper all copies together reached 207 to
/// 232 GB/s of 450, and seven small ones took 54 us (github.com/KuangjuX/NVSHMEM-Tutorial, issue 23
/// and pull requests 29 and 31): copies of a program's own, for what NCCL's take is not published.
constexpr double carried_by_copies = 0.49, copy_us = 54.0 / 7;

/// Does NCCL gather by copies here? It does so in symmetric memory, within one domain of NVLink.
bool gathers_by_copies(const Cluster& cluster) {
  return cluster.forced.cta_policy == CtaPolicy::zero && cluster.nodes == 1 &&
         cluster.intra_node.kind == LinkKind::nvlink && cluster.intra_node.nvswitch;
}

int tree_levels(const Cluster& cluster) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(cluster.nodes))) - 1;
}

/// Hops of a tree's chain inside the largest node, up and down; the last one is counted by the
/// bytes.
int chain_hops(const Cluster& cluster) {
  return std::max(0, 2 * cluster.ranks_per_node.largest() - 3);
}

/// Bytes/s at which the channels of one of a double tree's two trees pass on a chunk, between ranks
/// that stand in so many nodes. Not so with Simple: by NCCL's figures 1536 V100 would take 1.4
/// times what they take for 32 to 64 MiB.
double of_one_tree(const NcclSystem& system, NcclProtocol protocol, int nodes) {
  if (protocol == NcclProtocol::simple) return std::numeric_limits<double>::infinity();
  return nccl_tree_channels * 1e9 * nccl_tree_channel_rate(system, protocol, nodes);
}

/// What sets the pace of a GPU's port where bytes go through the host's memory, there and back.
struct HostPace {
  double rate = 0;  ///< bytes/s that pass the port
  CollectiveBound name = CollectiveBound::port;
};
HostPace pace_through_host(const Cluster& cluster, const Port& port,
                           const PortConstants& constants) {
  const HostPace lanes{constants.host * port.rate};
  if (cluster.device.compute_capability >= first_with_pcie5 || port.loaded <= 0) return lanes;
  const HostPace loads{constants.through_host * port.per_byte / port.loaded,
                       CollectiveBound::host_memory};
  return loads.rate < lanes.rate ? loads : lanes;
}

/// Seconds that a byte of a chunk takes over all hops, one after the other: up and down a tree's
/// chains inside the nodes and its levels between them; NVLS adds up in one hop. `reached`: bytes/s
/// of data through each port. A tree's hop is as fast as the port and its channels are.
double hops_per_byte(const Cluster& cluster, const NcclSystem& system, NcclAlgorithm algorithm,
                     NcclProtocol protocol, const Ports& ports,
                     const std::array<double, ports_of_a_way>& reached) {
  if (algorithm == NcclAlgorithm::ring) return 0;
  const bool tree = algorithm == NcclAlgorithm::tree;
  double seconds = 0;
  if (ports[0].per_byte > 0) {
    const double copies = ports[0].loaded > 0 ? ports[0].per_byte / ports[0].loaded : 1;
    seconds +=
        tree ? chain_hops(cluster) * copies / std::min(reached[0], of_one_tree(system, protocol, 1))
             : ports[0].per_byte / reached[0];
  }
  if (cluster.nodes > 1 && algorithm != NcclAlgorithm::nvls) {
    // NCCL opens its channels by NIC, so a NIC of few passes on no more at once than one of eight.
    double node = reached[2] * std::max(8, nics_per_node(cluster));
    if (ports[1].per_byte > 0)
      node = std::min(node, reached[1] * cluster.ranks_per_node.smallest());
    if (tree) node = std::min(node, of_one_tree(system, protocol, cluster.nodes));
    seconds += 2 * tree_levels(cluster) / node;
  }
  return seconds;
}

/// A short message of LL, which one channel sends alone, passes on each hop at that channel's rate:
/// seconds for each of its bytes, and how many bytes at most are sent so.
struct OneChannel {
  double seconds_per_byte = 0, bytes = 0;
};
OneChannel one_channel(const Cluster& cluster, const NcclSystem& system, Collective collective,
                       NcclAlgorithm algorithm) {
  const bool tree = algorithm == NcclAlgorithm::tree;
  const double hops =
      tree ? chain_hops(cluster) + 2 * tree_levels(cluster) : ring_share(cluster, collective);
  return {hops / (1e9 * nccl_ll_channel_rate(system)), nccl_ll_channel_bytes(system, algorithm)};
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
  const RanksPerNode& ranks = cluster.ranks_per_node;
  const bool nvlink = cluster.intra_node.kind == LinkKind::nvlink && ranks.largest() > 1;
  for (NcclGraph* graph : {&system.ring, &system.tree}) {
    graph->channels = std::max(1, graph->channels);
    graph->nvlink = nvlink;
  }
  const bool nvls = nvlink && cluster.intra_node.nvswitch && ranks.equal() &&
                    cluster.device.compute_capability >= 90;
  const int heads =
      cluster.nodes > 1 ? std::min(nics_per_node(cluster), ranks.largest()) : ranks.largest();
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

/// What the lanes of a link carry of bytes that cross them twice.
double twice_over_lanes(const Link& link) {
  return fitted.host * link.bandwidth.bytes_per_second / 2;
}

}  // namespace

const PortConstants& fitted_ports() {
  return fitted;
}

Bandwidth bus_through_host(const Cluster& cluster) {
  const Link& link = cluster.intra_node;
  if (link.carries > 0) return {link.carries * link.bandwidth.bytes_per_second};
  const double twice = twice_over_lanes(link);
  return {cluster.device.compute_capability >= first_with_pcie5
              ? twice
              : std::min(twice, fitted.through_host)};
}

std::optional<HostRates> assumed_host_rates(const Cluster& cluster) {
  const Link& link = cluster.intra_node;
  const double lanes = twice_over_lanes(link);
  if (!through_host(cluster) || link.carries > 0 || lanes <= fitted.through_host ||
      cluster.device.compute_capability >= first_with_pcie5)
    return std::nullopt;
  return HostRates{slowest_host, {fitted.through_host}, std::min(quickest_host, Bandwidth{lanes})};
}

PortLaw::PortLaw(const Cluster& cluster, const PortConstants& constants,
                 const std::optional<NvlsTreeSizes>& known)
    : system_(wired(cluster)),
      nics_(cluster.nodes > 1 ? nics_per_node(cluster) : 0),
      most_channels_(cluster.forced.channels),
      only_short_trees_(cluster.forced.release == NcclRelease::before_2_5 &&
                        !cluster.forced.algorithm) {
  if (cluster.ranks() == 1) return;
  const bool nvlink = cluster.intra_node.kind == LinkKind::nvlink;
  const StepTimes inside =
      steps_of(cluster.intra_node, system_.ring.nvlink ? LinkKind::nvlink : LinkKind::pcie);
  // NCCL's figures for NVLink's steps are Hopper's: before, they take what they do over PCIe.
  // Chunks are counted apart, so an NVLS tree's step is the shorter one of earlier releases.
  NcclSystem stepping = system_;
  stepping.release = NcclRelease::before_2_28;
  if (cluster.device.compute_capability < 90) stepping.ring.nvlink = stepping.tree.nvlink = false;
  const bool blackwell = nvlink && cluster.device.compute_capability >= 100;
  const StepTimes between = steps_of(cluster.inter_node, LinkKind::infiniband);
  for (const Collective collective : all_collectives) {
    Candidates& candidates = candidates_[index_of(collective)];
    const double start_us =
        constants.start_us + (blackwell ? later_on_blackwell_us(cluster, collective) : 0);
    // An algorithm that the scenario forces upon all-reduces may not exist for other collectives,
    // so it is not forced upon those.
    const bool all_reduce = collective == Collective::all_reduce;
    const ForcedChoice forced =
        all_reduce ? cluster.forced : ForcedChoice{std::nullopt, cluster.forced.protocol, {}};
    for (const NcclAlgorithm algorithm : all_nccl_algorithms)
      for (const NcclProtocol protocol : all_nccl_protocols) {
        if (!nccl_offers(system_, collective, algorithm, protocol)) continue;
        if (is_forced_out(forced, algorithm, protocol)) continue;
        const bool nvls = algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
        const std::size_t p = index_of(protocol);
        Candidate candidate{algorithm, protocol};
        const double kernel = of_kernel(cluster, algorithm, protocol);
        const bool shards = algorithm == NcclAlgorithm::ring && is_of_shards(collective);
        const double steps =
            nccl_latency_us(stepping, collective, algorithm, protocol, inside, between, shards);
        candidate.start = 1e-6 * (start_us + steps);
        const auto bound = [&](CollectiveBound name, double seconds) {
          if (seconds <= candidate.seconds_per_byte) return;
          candidate.seconds_per_byte = seconds;
          candidate.bound = name;
        };
        const Ports ports = ports_of(cluster, collective, algorithm);
        std::array<double, ports_of_a_way> reached{};  // bytes/s of data
        for (std::size_t i = 0; i < ports.size(); ++i) {
          const Port& port = ports[i];
          const bool inside_node = i == 0;
          CollectiveBound name = port.name;
          if (inside_node && nvls)
            reached[i] = port.rate * constants.nvls * nvls_of_hopper(system_) *
                         (port.carries > 0 ? port.carries / carried(port.kind, constants) : 1);
          else if (inside_node && through_host(cluster) && !(port.carries > 0)) {
            const HostPace pace = pace_through_host(cluster, port, constants);
            reached[i] = data_share[p] * pace.rate;
            name = pace.name;
          } else {
            reached[i] = port.rate * data_share[p] *
                         (port.carries > 0 ? port.carries : carried(port.kind, constants));
            if (shards && blackwell && inside_node && !(port.carries > 0))
              reached[i] *= constants.blackwell;
          }
          if (port.slot > 0)
            reached[i] = std::min(reached[i], port.slot * data_share[p] * constants.pcie);
          if (port.per_byte > 0) bound(name, port.per_byte / reached[i] / kernel);
        }
        candidate.chunks = nccl_chunks(system_, algorithm, protocol);
        candidate.hops = hops_per_byte(cluster, system_, algorithm, protocol, ports, reached);
        const double bus = ring_share(cluster, collective);
        if (protocol == NcclProtocol::ll) {
          const OneChannel alone = one_channel(cluster, system_, collective, algorithm);
          candidate.alone = alone.seconds_per_byte;
          candidate.alone_bytes = alone.bytes;
          bound(CollectiveBound::sms, bus * 1e-9 / nccl_ll_limit(system_));
        }
        if (most_channels_)
          bound(CollectiveBound::sms, bus * 1e-9 / (*most_channels_ * nccl_channel_limit(system_)));
        if (shards)
          candidate.seconds_per_byte +=
              (collective == Collective::all_gather ? constants.in_place : 1) *
              own_part(cluster, system_, most_channels_);
        if (!(candidate.seconds_per_byte < 1))  // a byte a second: no bandwidth, or next to none
          throw std::invalid_argument("the link between the ranks has no bandwidth");
        candidates.of[candidates.count++] = candidate;
      }
    if (collective == Collective::all_gather && gathers_by_copies(cluster)) {
      Candidate copies;
      copies.copy_engines = true;
      copies.start = 1e-6 * (constants.start_us + (cluster.ranks() - 1) * copy_us);
      const Port port = ports_of(cluster, collective, NcclAlgorithm::ring)[0];
      copies.seconds_per_byte = port.per_byte / (carried_by_copies * port.rate);
      candidates.of[0] = copies;
      candidates.count = 1;
    }
    if (candidates.count == 0)
      throw std::invalid_argument(
          "NCCL does not offer that algorithm and protocol on these links and devices");
  }
  if (cluster.forced.algorithm) return;
  if (!price(Collective::all_reduce, NcclAlgorithm::nvls_tree, NcclProtocol::simple, MiB)) return;
  nvls_tree_ = known ? *known : ddpsim::nvls_tree_sizes(cluster);
  nvls_tree_line_ =
      narrowest(cluster, Collective::all_reduce, NcclAlgorithm::nvls_tree).seconds_per_byte;
}

PortLaw::Price PortLaw::price(const Candidate& candidate, double bytes) const {
  const Bytes size{static_cast<std::int64_t>(bytes)};
  const double transfer = bytes * candidate.seconds_per_byte;
  const double latency = candidate.time(bytes) - transfer;
  Price price{from_seconds(latency),
              from_seconds(std::min(latency, candidate.filling(bytes))),
              from_seconds(transfer),
              {}};
  if (candidate.copy_engines) {
    price.choice.copy_engines = true;
    price.choice.bound = latency > transfer ? CollectiveBound::latency : CollectiveBound::port;
    return price;
  }
  int channels = nccl_channels(system_, candidate.algorithm, candidate.protocol, size);
  if (most_channels_) channels = std::min(channels, *most_channels_);
  const bool waits = price.latency - price.filling > price.transfer + price.filling;
  price.choice = {candidate.algorithm, candidate.protocol, static_cast<std::int16_t>(channels),
                  static_cast<std::int16_t>(nics_),
                  waits ? CollectiveBound::latency : candidate.bound};
  return price;
}

const PortLaw::Candidate& PortLaw::quickest(const Candidates& candidates, double bytes) const {
  const auto taken = [&](const Candidate& candidate) {
    return !only_short_trees_ || candidate.algorithm != NcclAlgorithm::tree ||
           bytes * candidate.seconds_per_byte < candidate.start;
  };
  const Candidate* best = nullptr;
  for (std::size_t c = 0; c < candidates.count; ++c) {
    const Candidate& candidate = candidates.of[c];
    if (!taken(candidate)) continue;
    if (best == nullptr || candidate.time(bytes) < best->time(bytes)) best = &candidate;
  }
  return *best;  // a ring is always to be had
}

PortLaw::Price PortLaw::chosen(Collective collective, Bytes size) const {
  const Candidates& candidates = candidates_[index_of(collective)];
  if (candidates.count == 0) return {};  // one rank
  const double bytes = static_cast<double>(std::max<std::int64_t>(size.count, 0));
  if (collective == Collective::all_reduce && nvls_tree_.contain(bytes)) return of_nvls_tree(bytes);
  return price(quickest(candidates, bytes), bytes);
}

/// Where NCCL changes over to it the time jumps up, which is as it is in logs; but it is no more
/// than that of a message which is too large for it, or of so many smaller ones that hold the same
/// bytes.
PortLaw::Price PortLaw::of_nvls_tree(double bytes) const {
  const Candidates& candidates = candidates_[index_of(Collective::all_reduce)];
  Price found;
  for (std::size_t c = 0; c < candidates.count; ++c)
    if (candidates.of[c].algorithm == NcclAlgorithm::nvls_tree)
      found = price(candidates.of[c], bytes);
  int parts = 1;
  while (bytes / parts >= nvls_tree_.from) parts *= 2;
  Price split = price(quickest(candidates, bytes / parts), bytes / parts);
  split.latency *= parts;
  split.filling *= parts;
  split.transfer *= parts;
  const Price larger = price(quickest(candidates, nvls_tree_.to), nvls_tree_.to);
  const CollectiveChoice nvls_tree = found.choice;
  for (const Price& other : {split, larger}) {
    if (other.time() >= found.time()) continue;
    found = other;
    if (in_seconds(other.transfer) < bytes * nvls_tree_line_) continue;  // too quick for NVLS
    found.choice = nvls_tree;  // the algorithm is an NVLS tree all the same
    found.choice.bound = other.choice.bound;
  }
  return found;
}

std::optional<PortLaw::Price> PortLaw::price(Collective collective, NcclAlgorithm algorithm,
                                             NcclProtocol protocol, Bytes size) const {
  const Candidates& candidates = candidates_[index_of(collective)];
  for (std::size_t c = 0; c < candidates.count; ++c)
    if (candidates.of[c].algorithm == algorithm && candidates.of[c].protocol == protocol)
      return price(candidates.of[c], static_cast<double>(size.count));
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
