#include "model/cost/gloo_law.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

// Worked example: four hosts of one rank on 10 Gbit/s Ethernet, 30 us a step, 64 MiB, memory of
// 57.6 GB/s.
//
//     ring               6 steps of 30 us; 2 x 3/4 of 67.1 MB at 0.956 x 1.25 GB/s: 84.2 ms
//     halving, doubling  4 steps of 30 us, and the same bytes
//     memory             3/4 of 67.1 MB x (7 + 4) / 57.6 GB/s: 9.6 ms, which the wire hides

namespace ddpsim {
namespace {

/// Bytes of memory traffic for each byte of the array that a rank sends and receives in one half:
/// TCP reads and writes it on its way out, and again on its way in. What is added up is read twice
/// and written once more.
constexpr double copied = 4, added = 3;

/// A network's line rate carries headers; other links are as they were given.
double payload_rate(const Link& link) {
  const bool network = link.kind == LinkKind::ethernet || link.kind == LinkKind::infiniband;
  return link.bandwidth.bytes_per_second * (network ? tcp_share : 1);
}

bool power_of_two(int count) {
  return std::has_single_bit(static_cast<unsigned>(count));
}

int doublings(int count) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(count))) - 1;
}

/// What one half of an all-reduce takes of a cluster.
struct Half {
  int inner_steps = 0, outer_steps = 0;  ///< within nodes, between them
  double inner = 0,
         outer = 0;  ///< bytes through a rank's link and a node's NIC for each of the array
};

Half half_of(const Cluster& cluster, GlooAlgorithm algorithm) {
  const int ranks = cluster.ranks(), inside = cluster.ranks_per_node.largest(),
            nodes = cluster.nodes;
  const double all = ranks, g = inside, hosts = nodes;
  switch (algorithm) {
    case GlooAlgorithm::ring: {
      // What goes round a ring of nodes crosses each of them once, but for the hop it need not
      // take.
      const int outer_steps = nodes == 1 ? 0 : std::min(nodes, ranks - 1);
      return {ranks - 1 - outer_steps, outer_steps, inside > 1 ? (all - 1) / all : 0,
              nodes > 1 ? (all - 1) / all : 0};
    }
    case GlooAlgorithm::halving_doubling:
      if (!cluster.ranks_per_node.equal() || !power_of_two(inside) || !power_of_two(nodes))
        throw std::invalid_argument(
            "halving_doubling is priced for numbers of ranks and nodes that are powers of two, and "
            "nodes that are alike");
      return {doublings(inside), doublings(nodes), 1 - 1 / g, 1 - 1 / hosts};
  }
  return {};
}

}  // namespace

GlooLaw::GlooLaw(const Cluster& cluster)
    : algorithm_(cluster.forced.gloo.value_or(GlooAlgorithm::ring)) {
  if (cluster.ranks() == 1) return;
  const Half half = half_of(cluster, algorithm_);
  if (cluster.nodes > 1) nics_ = 1;  // a process speaks through one
  latency_ = 2 * (half.inner_steps * in_seconds(cluster.intra_node.latency) +
                  half.outer_steps * in_seconds(cluster.inter_node.latency));
  double wire = 0;  // seconds a byte of one half
  const auto cross = [&](CollectiveBound port, double bytes, const Link& link) {
    if (bytes <= 0) return;
    const double line = link.bandwidth.bytes_per_second;
    if (line <= 0) throw std::invalid_argument("the link between the ranks has no bandwidth");
    wire = std::max(wire, bytes / payload_rate(link));
    if (2 * bytes / line > narrowest_.seconds_per_byte) narrowest_ = {2 * bytes / line, port};
  };
  cross(CollectiveBound::port, half.inner, cluster.intra_node);
  cross(CollectiveBound::nic, half.outer, cluster.inter_node);
  const double memory =
      cluster.device.memory_bandwidth.bytes_per_second * cluster.device.memory_efficiency;
  const double ranks = cluster.ranks();
  const double traffic = memory > 0 ? (ranks - 1) / ranks / memory : 0;
  seconds_per_byte_ = std::max(wire, (copied + added) * traffic) + std::max(wire, copied * traffic);
  if (const double moved = (2 * copied + added) * traffic; moved > narrowest_.seconds_per_byte)
    narrowest_ = {moved, CollectiveBound::memory};
}

GlooLaw::Price GlooLaw::all_reduce(Bytes size) const {
  const double bytes = static_cast<double>(std::max<std::int64_t>(size.count, 0));
  Price price{from_seconds(latency_), from_seconds(bytes * seconds_per_byte_), {}};
  price.choice.gloo = algorithm_;
  price.choice.nics = static_cast<std::int16_t>(nics_);
  price.choice.bound = price.latency > price.transfer ? CollectiveBound::latency : narrowest_.port;
  return price;
}

}  // namespace ddpsim
