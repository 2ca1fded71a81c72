#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>

#include "model/cost/nccl_law.hpp"

// NCCL looks for C channels (rings, trees or NVLS heads) of equal speed through the links of a
// node. Speeds come from a fixed list, largest first, and a lower one must give more in total to be
// kept. A channel takes its speed from every link it passes; a link that is used up ends the
// search. NCCL tries paths one by one; here every GPU has the same links, so how many channels fit
// is arithmetic.
//
// Worked example, 8 H100 on an NVSwitch, 370.8 GB/s a GPU: a ring passes each GPU's link once, so 6
// fit at 60 GB/s, 7 at 50 (350 in all, less than 360), 9 at 40, 12 at 30 (360, no gain); 24 is less
// than half of 60 and ends it. One CTA does not move 60 GB/s, so the 6 become 12 of 30. A tree may
// have as many channels as the ring; 12 fit at 30 GB/s. An NVLS head sends and receives twice what
// the other GPUs do: 8 heads take 9 times the speed from each link, 40 GB/s is the largest that
// fits.
//
// Left out: sockets of a host (one root complex stands for all PCIe paths), the half channel that a
// tree between nodes takes from its second GPU to the NIC, and which NIC is near which GPU.
//
// Source: NCCL 2.28.9, src/graph/search.cc ncclTopoCompute and ncclTopoSearchRec; src/graph/topo.h.

namespace ddpsim {
namespace {

// speedArrayIntra and its siblings, GB/s; a search within one node and between nodes.
constexpr std::array intra_speeds{40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0,
                                  9.0,  7.0,  6.0,  5.0,  4.0,  3.0};
constexpr std::array inter_speeds{48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0,
                                  7.0,  6.0,  5.0,  4.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array intra_speeds_sm90{60.0, 50.0, 40.0, 30.0, 24.0, 20.0,
                                       15.0, 12.0, 11.0, 6.0,  3.0};
constexpr std::array inter_speeds_sm90{48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5,
                                       15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array intra_speeds_sm100{90.0, 80.0, 70.0, 60.0, 50.0, 40.0,
                                        30.0, 24.0, 20.0, 19.0, 18.0};
constexpr std::array inter_speeds_sm100{96.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0,
                                        17.5, 15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};

constexpr int most_channels = 64;            // MAXCHANNELS; a search may fill half of them
constexpr int most_blackwell_channels = 16;  // by default; release note of 2.28: halved from 32
constexpr int most_heads = 32;               // NCCL_MAX_NVLS_ARITY
constexpr double same_device = 5000;         // LOC_BW, GB/s
constexpr double fallback_speed = 0.1;       // when nothing fits: one channel, GB/s

/// One node as the search sees it. GB/s per direction.
struct Node {
  int capability = 80;
  int gpus = 1;
  int nics = 0;         ///< 0: there is only this node
  double link = 0;      ///< from one GPU to the others
  double pcie = 0;      ///< from one GPU to the NICs
  double nic = 0;       ///< of one NIC
  bool nvlink = false;  ///< `link` is NVLink, and traffic to the NICs does not use it
  bool nvswitch = false;
  bool root_complex = false;  ///< `link` crosses the root complex of an Intel CPU
};

enum class Pattern { ring, tree, nvls };

/// Channels and their speeds.
struct Channels {
  int count = 0;
  double intra = 0, inter = 0;
};

std::span<const double> speeds_of(const Node& node) {
  const bool within = node.nics == 0;
  if (node.capability >= 100)
    return within ? std::span<const double>(intra_speeds_sm100) : inter_speeds_sm100;
  if (node.capability >= 90)
    return within ? std::span<const double>(intra_speeds_sm90) : inter_speeds_sm90;
  return within ? std::span<const double>(intra_speeds) : inter_speeds;
}

/// How often `cost` goes into `budget`; NCCL rounds what is left of a link to three decimals.
int times(double budget, double cost) {
  return static_cast<int>(std::min(std::floor(budget / cost + 1e-6), 1000.0));
}

/// Channels the links between the GPUs of a node have room for.
int fit_inside(const Node& node, Pattern pattern, double speed) {
  const int per_link = times(node.link, node.root_complex ? speed * 6 / 5 : speed);
  if (pattern == Pattern::nvls) return per_link - 1;
  // The last GPU of a chain sends to no other, so chains with different ends fit better. A tree is
  // a chain inside a node; a ring is one between nodes, if its end reaches the NIC by another link.
  const bool chain = node.nics > 0 ? node.nvlink : pattern == Pattern::tree;
  if (node.gpus == 1 || !chain) return per_link;
  const int spared = per_link / (node.gpus - 1);
  if (node.nics > 0) return per_link + spared;  // NICs beside different GPUs give different ends
  // Without NICs NCCL tries all ends in turn and gives up after 2^14 steps. A channel more takes
  // gpus - 1 channels that end elsewhere: at any GPU, before Hopper in either direction.
  const int choices = node.gpus == 2 || node.capability >= 90 ? node.gpus : 2 * node.gpus;
  const int found = static_cast<int>(14 / ((node.gpus - 1) * std::log2(choices)));
  return per_link + std::min(spared, found);
}

/// Channels the NICs, and the GPUs' way to them, have room for.
int fit_between(const Node& node, Pattern pattern, double speed) {
  const int per_nic = times(std::min(node.nic, node.pcie), speed);
  if (pattern == Pattern::nvls) return per_nic > 0 ? node.nics : 0;  // each head has its own NIC
  // Before Ampere what a GPU receives costs it an eighth of that in sending.
  const bool echo = node.capability < 80 && node.gpus == 1;
  return std::min(node.nics * per_nic, node.gpus * times(node.pcie, echo ? speed * 9 / 8 : speed));
}

/// ncclTopoCompute for one pattern.
class Search {
 public:
  Search(const Node& node, Pattern pattern, int least, int most)
      : node_(node), pattern_(pattern), speeds_(speeds_of(node)), least_(least), most_(most) {}

  Channels run() {
    take_fastest();
    duplicate();
    raise();
    if (best_.count == 0 && pattern_ != Pattern::nvls) best_ = {1, fallback_speed, fallback_speed};
    return best_;
  }

 private:
  /// Fits as many channels as possible at these speeds; keeps them if they are better.
  void attempt(double intra, double inter) {
    int count = most_;
    if (node_.gpus > 1 || node_.nics == 0)
      count = std::min(count, fit_inside(node_, pattern_, intra));
    if (node_.nics > 0) count = std::min(count, fit_between(node_, pattern_, inter));
    if (count < least_) return;
    const bool better = pattern_ == Pattern::nvls
                            ? count > best_.count || count * inter > best_.count * best_.inter
                            : count * intra > best_.count * best_.intra;
    if (better) best_ = {count, intra, inter};
  }

  double most_of_link() const { return std::max(node_.link, node_.pcie); }

  /// The first speed that is possible at all.
  std::size_t first_speed() const {
    const double widest = node_.nics > 0 ? std::min(node_.nic, node_.pcie) : node_.link;
    double total = most_of_link();
    if (node_.gpus > 1 && pattern_ != Pattern::ring) total *= node_.gpus / (node_.gpus - 1.0);
    std::size_t index = 0;
    while (index + 1 < speeds_.size() &&
           (speeds_[index] > widest || speeds_[index] * least_ > total))
      ++index;
    return index;
  }

  void take_fastest() {
    for (std::size_t index = first_speed(); index < speeds_.size(); ++index) {
      if (best_.count > 0 && speeds_[index] / best_.inter <= 0.49) return;
      const int before = best_.count;
      attempt(speeds_[index], speeds_[index]);
      if (best_.count > before && best_.count == most_) return;
      if (best_.count * best_.inter >= most_of_link()) return;
    }
  }

  /// ncclTopoDupChannels: one CTA cannot drive a fast channel, two at half the speed can.
  void duplicate() {
    const bool enough = node_.capability > 80 && best_.intra < 50 && best_.count > 4;
    if (best_.count == 0 || pattern_ == Pattern::nvls || best_.intra < 25 || enough) return;
    const int count = std::min(2 * best_.count, most_);
    const int share = (count + best_.count - 1) / best_.count;
    best_ = {count, best_.intra / share, best_.inter / share};
  }

  /// With the number of channels settled, tries higher speeds: for a ring everywhere, for NVLS
  /// between the nodes, for a tree inside them.
  void raise() {
    if (best_.count == 0) return;
    least_ = best_.count;
    std::size_t index = 0;
    while (index + 1 < speeds_.size() && speeds_[index] > best_.inter) ++index;
    double intra = speeds_[index], inter = intra;
    while (index > 0) {
      if (pattern_ == Pattern::ring) {
        intra = inter = speeds_[--index];
      } else if (pattern_ == Pattern::nvls && inter == best_.inter && inter < 2 * intra) {
        most_ = best_.count;
        inter = speeds_[--index];
      } else if (intra == best_.intra && intra < 2 * inter) {
        intra = speeds_[--index];
      } else {
        return;
      }
      attempt(intra, inter);
    }
  }

  const Node& node_;
  Pattern pattern_;
  std::span<const double> speeds_;
  int least_, most_;
  Channels best_;
};

/// PCIe x16 of a GPU whose own link is not PCIe: generation 5 since Hopper, 4 since Ampere.
/// Source: src/graph/topo.cc, width * speed / 80; the generations are the vendor's data sheets'.
double usual_pcie(int capability) {
  if (capability >= 90) return 48;
  return capability >= 80 ? 24 : 12;
}

/// GB/s NCCL attributes to a link; to a NIC its speed in Mb/s / 8000.
double assumed(const Link& link) {
  const bool told = link.nccl_bandwidth.bytes_per_second > 0;
  return (told ? link.nccl_bandwidth : link.bandwidth).bytes_per_second * 1e-9;
}

/// GPUs that cannot copy to each other over PCIe (`Device::peer_to_peer`) go through host memory.
/// NCCL searches them as any PCIe path through the root complex, and so does this: how fast the
/// host's memory and the copies through it are, neither knows, and the law is far too fast there.
Node node_of(const Cluster& cluster, int ranks) {
  const Link& link = cluster.intra_node;
  Node node;
  node.capability = cluster.device.compute_capability;
  node.gpus = ranks;
  node.nics = cluster.nodes == 1 ? 0 : nics_of_node(cluster, ranks);
  node.nic = assumed(cluster.inter_node);
  node.nvlink = link.kind == LinkKind::nvlink && node.gpus > 1;
  node.nvswitch = node.nvlink && link.nvswitch;
  node.root_complex =
      link.kind == LinkKind::pcie && cluster.cpu == CpuVendor::intel && node.gpus > 1;
  node.link = cluster.ranks() == 1 ? same_device : assumed(link);
  const bool through_link = link.kind != LinkKind::nvlink && assumed(link) > 0;
  node.pcie = through_link ? assumed(link) : usual_pcie(node.capability);
  return node;
}

NcclGraph graph_of(const Channels& channels, int count, bool nvlink) {
  return {count, gigabytes_per_second(channels.intra), gigabytes_per_second(channels.inter),
          nvlink && channels.intra > fallback_speed};
}

/// CTAs of the communicator: ncclTopoPostset in src/graph/connect.cc.
int communicator_channels(const Node& node, int searched, double ring_speed) {
  int channels = 2 * searched;
  if (node.nics > 0 && node.capability >= 90 && ring_speed > 45 && channels < 16) channels *= 2;
  return std::min(channels, node.capability >= 100 ? most_blackwell_channels : most_channels);
}

/// Rings, and trees on as many channels.
struct RingsAndTrees {
  Channels ring, tree;
};

RingsAndTrees found_in(const Node& node) {
  const Channels ring = Search(node, Pattern::ring, 1, most_channels / 2).run();
  return {ring, Search(node, Pattern::tree, ring.count, ring.count).run()};
}

Channels least_of(const Channels& a, const Channels& b) {
  return {std::min(a.count, b.count), std::min(a.intra, b.intra), std::min(a.inter, b.inter)};
}

}  // namespace

NcclSystem nccl_system(const Cluster& cluster) {
  const RanksPerNode& ranks = cluster.ranks_per_node;
  if (cluster.nodes < 1 || ranks.smallest() < 1)
    throw std::invalid_argument("nccl_system: a cluster has at least one node and one rank");
  const Node node = node_of(cluster, ranks.largest());
  auto [ring, tree] = found_in(node);
  if (!ranks.equal()) {
    const RingsAndTrees smallest = found_in(node_of(cluster, ranks.smallest()));
    ring = least_of(ring, smallest.ring);
    tree = least_of(tree, smallest.tree);
  }
  const int channels = std::min(ring.count, tree.count);

  NcclSystem system;
  system.nodes = cluster.nodes;
  system.ranks_per_node = ranks.largest();
  system.lacking = ranks.lacking();
  system.compute_capability = node.capability;
  system.cpu = cluster.cpu;
  system.release = cluster.forced.release;
  system.ring = graph_of(ring, channels, node.nvlink);
  system.tree = graph_of(tree, channels, node.nvlink);
  system.channels = communicator_channels(node, channels, ring.intra);
  // RDMA NICs sit beside a GPU; sockets are served by the CPU. Before Hopper LL128 is not trusted
  // to a NIC beside another GPU either.
  system.direct_nics = cluster.inter_node.kind == LinkKind::infiniband &&
                       (node.capability >= 90 || node.nics >= node.gpus);
  if (node.nvswitch && node.capability >= 90 && ranks.equal()) {
    const int heads = std::min({most_heads, node.gpus, node.nics > 0 ? node.nics : most_heads});
    const int least = node.nics > 0 ? 1 : heads;  // within a node all GPUs must pull evenly
    const Channels nvls = Search(node, Pattern::nvls, least, heads).run();
    system.nvls = graph_of(nvls, nvls.count, true);
    if (nvls.count > 0)
      system.nvls_channels = node.capability < 100 ? 16 : (cluster.nodes > 1 ? 32 : 24);
  }
  return system;
}

}  // namespace ddpsim
