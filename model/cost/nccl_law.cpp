#include "model/cost/nccl_law.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "model/base/index.hpp"

// A graph gives each algorithm C channels of so many GB/s; factors and caps fitted by NCCL's
// authors turn that into what an algorithm reaches with a protocol; a sum over steps turns the
// number of ranks and nodes into a fixed cost. Worked example: ring and Simple on 8 H100, 12
// channels of 30 GB/s.
//
//     bandwidth   12 * 30 = 360 GB/s on the bus; the array sees n / 2(n-1) = 8/14 of it, 205.7 GB/s
//     latency     8.4 us to start + 14 steps of 3.4 us over NVLink = 56.0 us
//     64 MiB      56.0 us + 67.1 MB / 205.7 GB/s = 382.2 us
//
// All numbers are GB/s and us. Source: NCCL 2.28.9, src/graph/tuning.cc, unless said otherwise.

namespace ddpsim {
namespace {

using PerProtocol = std::array<double, all_nccl_protocols.size()>;      // LL, LL128, Simple
using Latencies = std::array<PerProtocol, all_nccl_algorithms.size()>;  // [algorithm][protocol]

// ncclTunerConstantsDefaults: baseLatencies and hwLatencies. Rows: tree, ring, NVLS, NVLSTree.
constexpr Latencies base_latency{{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {0, 0, 0}, {0, 0, 0}}};
constexpr Latencies nvlink_latency{{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 25.0}, {0, 0, 25.0}}};
constexpr Latencies pcie_latency{{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 0}, {0, 0, 0}}};
constexpr Latencies network_latency{
    {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, {0, 0, 18.0}, {0, 0, 20.9}}};
constexpr double nvls_tree_network_latency_before_2_28 = 14.0;

// getNetOverhead: what posting one message to a NIC costs the host.
constexpr double network_overhead_amd = 2.0, network_overhead_other = 1.0;

// ncclTunerConstantsDefaults: [generation][1 node, 2 nodes, more].
using Caps = std::array<std::array<double, 3>, 4>;
enum Generation : std::size_t { volta, ampere, hopper, blackwell };
constexpr Caps cap_ll{
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
constexpr Caps cap_ring_ll128{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
constexpr Caps cap_tree_ll128{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
constexpr Caps cap_tree{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
constexpr Caps cap_nvls_tree{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 43.8}}};
constexpr std::array<double, 4> nvls_efficiency{0.0, 0.0, 0.85, 0.74};  // [generation]

// treeCorrectionFactor: [protocol][floor(log2(bytes / 64))], 64 B to 256 MB.
constexpr std::array<std::array<double, 23>, all_nccl_protocols.size()> tree_correction{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

Generation generation_of(const NcclSystem& system) {
  if (system.compute_capability >= 100) return blackwell;
  if (system.compute_capability >= 90) return hopper;
  return system.compute_capability >= 80 ? ampere : volta;
}

double in_gigabytes(Bandwidth rate) {
  return rate.bytes_per_second * 1e-9;
}

/// One entry of the cost table, and what its formulas look up.
struct Entry {
  const NcclSystem& system;
  Collective collective;
  NcclAlgorithm algorithm;
  NcclProtocol protocol;

  bool is(NcclAlgorithm a) const { return algorithm == a; }
  bool is(NcclProtocol p) const { return protocol == p; }
  bool all_reduce() const { return collective == Collective::all_reduce; }
  bool rooted() const {
    return collective == Collective::broadcast || collective == Collective::reduce;
  }
  bool nvls_family() const { return is(NcclAlgorithm::nvls) || is(NcclAlgorithm::nvls_tree); }
  const NcclGraph& graph() const {
    if (is(NcclAlgorithm::tree)) return system.tree;
    return is(NcclAlgorithm::ring) ? system.ring : system.nvls;
  }
  double cap(const Caps& caps) const {
    return caps[generation_of(system)][static_cast<std::size_t>(std::min(system.nodes, 3) - 1)];
  }
  double from(const Latencies& table) const {
    return table[index_of(algorithm)][index_of(protocol)];
  }
  int steps() const {
    if (all_reduce()) return 2 * (system.ranks() - 1);
    return rooted() ? system.ranks() : system.ranks() - 1;
  }
};

/// Between nodes the limit of LL is the CPU's, not the GPU's.
double ll_cap(const Entry& entry) {
  if (entry.system.nodes == 1) return entry.cap(cap_ll);
  const Generation row = entry.system.cpu == CpuVendor::amd ? ampere : volta;
  return cap_ll[row][entry.system.nodes == 2 ? 1 : 2];
}

/// LL128 relies on 128 B stores arriving whole. NCCL trusts NVLink with that and NICs that read GPU
/// memory themselves, but no path through a CPU; a lone GPU of a node has no path inside it.
bool ll128_is_safe(const NcclSystem& system, const NcclGraph& graph) {
  const bool inside = graph.nvlink || system.ranks_per_node == 1;
  const bool between = system.nodes == 1 || system.direct_nics;
  return system.compute_capability >= 70 && inside && between;
}

bool available(const Entry& entry, bool nvls_allowed) {
  const NcclSystem& system = entry.system;
  if (entry.graph().channels < 1) return false;
  if (entry.rooted() && !entry.is(NcclAlgorithm::ring)) return false;
  if (entry.is(NcclProtocol::ll128) && !ll128_is_safe(system, entry.graph())) return false;
  const bool nvls = nvls_allowed && system.release != NcclRelease::before_2_5 &&
                    entry.is(NcclProtocol::simple) && system.compute_capability >= 90 &&
                    system.nvls.channels >= 2;
  switch (entry.algorithm) {
    case NcclAlgorithm::tree:
      return entry.all_reduce();
    case NcclAlgorithm::ring:
      return true;
    case NcclAlgorithm::nvls:  // between nodes it would need CollNet, which is off by default
      return nvls && system.nodes == 1;
    case NcclAlgorithm::nvls_tree:
      return nvls && system.nodes > 1 && entry.all_reduce();
  }
  return false;
}

/// GB/s of one NVLS channel: the switch adds up inside the node, a tree of NICs between nodes.
double nvls_channel_bandwidth(const Entry& entry) {
  const NcclGraph& graph = entry.graph();
  const double heads = graph.channels, per_node = entry.system.ranks_per_node;
  const double intra = in_gigabytes(graph.intra) * nvls_efficiency[generation_of(entry.system)] *
                       (heads - 1) / heads * (entry.all_reduce() ? 2 : (per_node - 1) / per_node);
  if (entry.is(NcclAlgorithm::nvls)) return std::min(intra, in_gigabytes(graph.inter));
  const double inter = in_gigabytes(graph.inter) * (entry.system.nodes <= 2 ? 2 : 1);
  return std::min({intra, inter, entry.cap(cap_nvls_tree)});
}

/// GB/s over all channels that cross each link.
double bus_bandwidth(const Entry& entry) {
  const NcclSystem& system = entry.system;
  const NcclGraph& graph = entry.graph();
  const double channels = graph.channels;
  if (entry.nvls_family()) return channels * nvls_channel_bandwidth(entry);

  double bus = channels * in_gigabytes(system.nodes <= 2 ? graph.intra : graph.inter);
  if (entry.is(NcclAlgorithm::ring)) {
    if (entry.is(NcclProtocol::ll)) return std::min(ll_cap(entry), bus * 0.5);
    if (entry.is(NcclProtocol::ll128))
      return std::min(bus * 0.92, channels * entry.cap(cap_ring_ll128));
    return bus;
  }
  bus = std::min(bus * 0.92, channels * entry.cap(cap_tree));
  if (entry.is(NcclProtocol::ll)) bus = std::min(bus / 3.8, ll_cap(entry));
  if (entry.is(NcclProtocol::ll128))
    bus = std::min(bus * (system.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                   channels * entry.cap(cap_tree_ll128));
  // With one GPU in a node a tree cannot split its two children between GPUs.
  return system.mean_ranks() == 1 && system.nodes > 1 ? bus * 0.85 : bus;
}

/// GB/s of the array itself.
double algorithm_bandwidth(const Entry& entry) {
  const double bus = bus_bandwidth(entry);
  if (entry.is(NcclAlgorithm::tree)) return bus * 0.5;
  // NCCL leaves the bus bandwidth of a gather or scatter through NVLS as it is.
  if (!entry.all_reduce() && entry.is(NcclAlgorithm::nvls)) return bus;
  return bus * entry.system.ranks() / entry.steps();
}

double ring_latency(const Entry& entry, double intra, double inter, double rooted_inter,
                    bool exposed) {
  const NcclSystem& system = entry.system;
  if (entry.rooted())  // pipelined: one step is exposed, if all channels have the same order
    return system.nodes > 1 ? rooted_inter : intra;
  if (system.nodes == 1) return entry.steps() * intra;
  // Every step of a ring that leaves the node has to post to its NIC, three times for Simple.
  const double post =
      (system.cpu == CpuVendor::amd ? network_overhead_amd : network_overhead_other) *
      (entry.is(NcclProtocol::simple) ? 3 : 1);
  const int between = exposed ? std::min(system.nodes, entry.steps())
                              : (entry.all_reduce() ? 2 : 1) * (system.nodes - 1);
  return (entry.steps() - between) * std::max(intra, post) + between * inter;
}

double latency_us(const Entry& entry, const StepTimes& inside, const StepTimes& outside,
                  bool exposed = false) {
  const NcclSystem& system = entry.system;
  const auto step = [](double usual, const StepTimes& link) {
    return usual * link.scale + link.extra_us;
  };
  const double intra =
      step(entry.from(entry.graph().nvlink ? nvlink_latency : pcie_latency), inside);
  // With one GPU in a node the network is exposed whole, as it is in a tree.
  Entry network = entry;
  if (system.mean_ranks() == 1 || exposed) network.algorithm = NcclAlgorithm::tree;
  // Simple also waits for the NIC's flush.
  const bool earlier = system.release != NcclRelease::from_2_28;
  const double usual_inter = entry.is(NcclAlgorithm::nvls_tree) && earlier
                                 ? nvls_tree_network_latency_before_2_28
                                 : network.from(network_latency);
  const double inter = step(usual_inter, outside) +
                       in_us(system.nic_latency) * (entry.is(NcclProtocol::simple) ? 2 : 1);
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(system.nodes))) - 1;
  switch (entry.algorithm) {
    case NcclAlgorithm::tree:
      return entry.from(base_latency) + 2 * ((system.ranks_per_node - 1) * intra + levels * inter);
    case NcclAlgorithm::ring:
      return entry.from(base_latency) +
             ring_latency(entry, intra, inter, step(entry.from(network_latency), outside), exposed);
    case NcclAlgorithm::nvls:
      return intra;
    case NcclAlgorithm::nvls_tree:
      return entry.from(base_latency) + intra + 2 * levels * inter;
  }
  return 0;
}

/// From 64 B per channel and rank on, a ring between nodes waits longer (ncclTopoGetAlgoTime).
double plateau(const Entry& entry, Bytes size) {
  const NcclSystem& system = entry.system;
  const bool ring_between_nodes = entry.is(NcclAlgorithm::ring) && system.nodes > 1 &&
                                  entry.is(NcclProtocol::simple) && entry.all_reduce();
  if (!ring_between_nodes || size.count < std::int64_t{64} * system.channels * system.ranks())
    return 1;
  return system.compute_capability < 80 ? 1.9 : 1.4;
}

double tree_factor(const Entry& entry, Bytes size) {
  if (!entry.is(NcclAlgorithm::tree) || size.count < 64) return 1;
  const auto& row = tree_correction[index_of(entry.protocol)];
  const auto doublings =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(size.count) / 64) - 1);
  return doublings < row.size() ? row[doublings] : 1;
}

/// CTAs for a message: as many as have enough bytes for each of their threads (src/enqueue.cc
/// topoGetAlgoInfo).
int channels_used(const Entry& entry, Bytes size) {
  const NcclSystem& system = entry.system;
  if (entry.nvls_family()) return std::max(1, system.nvls_channels);
  std::int64_t threads = entry.is(NcclProtocol::ll128) ? 640 : 512;
  std::int64_t bytes_per_thread = entry.is(NcclProtocol::simple) ? 64 : 8;
  if (entry.is(NcclAlgorithm::ring)) {
    // A slow ring (PCIe 3 or less) is fed by half the threads.
    if (entry.is(NcclProtocol::simple) &&
        system.ring.channels * in_gigabytes(system.ring.intra) <= 12)
      threads = 256;
    if (entry.is(NcclProtocol::ll)) bytes_per_thread *= system.ranks();
  }
  return static_cast<int>(
      std::clamp<std::int64_t>(size.count / (threads * bytes_per_thread), 1, system.channels));
}

}  // namespace

bool nccl_offers(const NcclSystem& system, Collective collective, NcclAlgorithm algorithm,
                 NcclProtocol protocol, bool nvls) {
  return system.ranks() > 1 && available({system, collective, algorithm, protocol}, nvls);
}

double nccl_latency_us(const NcclSystem& system, Collective collective, NcclAlgorithm algorithm,
                       NcclProtocol protocol, const StepTimes& inside, const StepTimes& between,
                       bool exposed) {
  return latency_us({system, collective, algorithm, protocol}, inside, between, exposed);
}

double nccl_ll_limit(const NcclSystem& system) {
  return ll_cap({system, Collective::all_reduce, NcclAlgorithm::ring, NcclProtocol::ll});
}

double nccl_channel_limit(const NcclSystem& system) {
  const Entry ring{system, Collective::all_reduce, NcclAlgorithm::ring, NcclProtocol::ll128};
  return ring.cap(cap_ring_ll128);
}

double nccl_copy_rate(const NcclSystem& system) {
  constexpr std::array<double, 4> rates{47.2 * 20 / 36.7, 47.2 * 20 / 36.7, 47.2, 59.1};
  return rates[generation_of(system)];
}

double nccl_tree_channel_rate(const NcclSystem& system, NcclProtocol protocol, int nodes) {
  if (protocol == NcclProtocol::ll) return nccl_ll_channel_rate(system);
  NcclSystem there = system;
  there.nodes = nodes;
  const Entry tree{there, Collective::all_reduce, NcclAlgorithm::tree, protocol};
  return 0.5 * tree.cap(protocol == NcclProtocol::ll128 ? cap_tree_ll128 : cap_tree);
}

double nccl_ll_channel_rate(const NcclSystem& system) {
  return cap_ll[generation_of(system)][0] / nccl_tree_channels;
}

double nccl_ll_channel_bytes(const NcclSystem& system, NcclAlgorithm algorithm) {
  constexpr double threads_of_8_bytes = 512 * 8;
  return threads_of_8_bytes * (algorithm == NcclAlgorithm::tree ? 2 : system.ranks());
}

int nccl_channels(const NcclSystem& system, NcclAlgorithm algorithm, NcclProtocol protocol,
                  Bytes size) {
  return channels_used({system, Collective::all_reduce, algorithm, protocol}, size);
}

NcclLaw::NcclLaw(const NcclSystem& system, bool nvls) : system_(system), nvls_(nvls) {
  if (std::min({system.nodes, system.ranks_per_node, system.channels, system.ring.channels}) < 1)
    throw std::invalid_argument("NcclLaw: nodes, ranks and channels are counted from one");
  if (system.ranks() == 1) return;
  for (const Collective collective : all_collectives)
    for (const NcclAlgorithm algorithm : all_nccl_algorithms)
      for (const NcclProtocol protocol : all_nccl_protocols) {
        const Entry entry{system_, collective, algorithm, protocol};
        if (available(entry, nvls_))
          cells_[index_of(collective)][index_of(algorithm)][index_of(protocol)] = {
              latency_us(entry, {}, {}), algorithm_bandwidth(entry)};
      }
}

std::optional<NcclEstimate> NcclLaw::estimate(Collective collective, NcclAlgorithm algorithm,
                                              NcclProtocol protocol, Bytes size) const {
  const Cell& cell = cells_[index_of(collective)][index_of(algorithm)][index_of(protocol)];
  if (cell.bandwidth <= 0) return std::nullopt;
  const Entry entry{system_, collective, algorithm, protocol};
  const double bandwidth = cell.bandwidth * tree_factor(entry, size);  // GB/s, so kB per us
  const double latency = cell.latency_us * plateau(entry, size);
  const double time = latency + static_cast<double>(size.count) / (1000 * bandwidth);
  return NcclEstimate{algorithm,
                      protocol,
                      from_seconds(latency * 1e-6),
                      gigabytes_per_second(bandwidth),
                      channels_used(entry, size),
                      from_seconds(time * 1e-6)};
}

NcclEstimate NcclLaw::choose(Collective collective, Bytes size) const {
  std::optional<NcclEstimate> best;
  for (const NcclAlgorithm algorithm : all_nccl_algorithms)
    for (const NcclProtocol protocol : all_nccl_protocols) {
      const auto candidate = estimate(collective, algorithm, protocol, size);
      if (candidate && (!best || candidate->time < best->time)) best = candidate;
    }
  return best.value_or(NcclEstimate{});  // one rank has nothing to choose and nothing to do
}

}  // namespace ddpsim
