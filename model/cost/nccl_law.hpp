#pragma once

#include <array>
#include <optional>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/cluster/cluster.hpp"

namespace ddpsim {

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, reduce };
inline constexpr std::array all_collectives{Collective::all_reduce, Collective::all_gather,
                                            Collective::reduce_scatter, Collective::broadcast,
                                            Collective::reduce};

/// What NCCL's graph search found for one algorithm. Bandwidths per channel and direction.
struct NcclGraph {
  int channels = 0;  ///< 0: the algorithm is not available
  Bandwidth intra, inter;
  bool nvlink = false;  ///< the worst path inside a node is NVLink
};

/// The hardware as NCCL sees it: enough to rank its algorithms.
struct NcclSystem {
  int nodes = 1;
  int ranks_per_node = 1;       ///< of the largest node
  int lacking = 0;              ///< ranks that smaller nodes lack of that, together
  int compute_capability = 80;  ///< times ten; the lowest of the ranks
  CpuVendor cpu = CpuVendor::intel;
  NcclRelease release = NcclRelease::from_2_28;
  NcclGraph ring, tree, nvls;
  int channels = 2;       ///< of the communicator: 2 x ring.channels before clipping
  int nvls_channels = 0;  ///< CTAs an NVLS collective takes
  Duration nic_latency{};
  /// A NIC reads a GPU's memory itself (RDMA): LL128 is safe between nodes.
  bool direct_nics = true;

  int ranks() const { return nodes * ranks_per_node - lacking; }
  /// As NCCL counts them for all nodes: the whole part of the mean.
  int mean_ranks() const { return ranks() / nodes; }
};

/// What NCCL's search would find for a cluster: channels and speeds from its fixed lists. Of nodes
/// with unequal numbers of ranks the least of what it finds in the smallest and the largest, as
/// NCCL's ranks agree on the least.
/// Source: NCCL 2.28.9, src/graph/search.cc ncclTopoCompute, src/graph/topo.cc.
NcclSystem nccl_system(const Cluster& cluster);

/// How the steps of a link that is not as NCCL takes it differ: each takes `scale` times NCCL's
/// figure, and `extra` more.
struct StepTimes {
  double scale = 1;
  double extra_us = 0;
};

/// Does NCCL offer this combination here? `nvls`: may NVLS be chosen (NCCL_NVLS_ENABLE).
bool nccl_offers(const NcclSystem& system, Collective collective, NcclAlgorithm algorithm,
                 NcclProtocol protocol, bool nvls = true);

/// The steps of a combination, in us, before NCCL's plateau: its base latency, the steps inside a
/// node and those between nodes. `exposed`: as a message waits for them that goes round once: some
/// part of a gather passes the network of every node, where NCCL counts one less, and waits for all
/// of its latency, which NCCL counts of trees.
double nccl_latency_us(const NcclSystem& system, Collective collective, NcclAlgorithm algorithm,
                       NcclProtocol protocol, const StepTimes& inside = {},
                       const StepTimes& between = {}, bool exposed = false);

/// GB/s on the bus that the flags of the LL protocol allow; between nodes the CPU's limit.
double nccl_ll_limit(const NcclSystem& system);

/// GB/s that one channel (a thread block) moves at most.
double nccl_channel_limit(const NcclSystem& system);

/// GB/s that one channel copies, or adds up, within a GPU's memory: what NCCL reckons for an SM of
/// its symmetric all-gathers and reduce-scatters (src/sym_kernels.cc), before Hopper in proportion
/// to what a ring's channel moves.
double nccl_copy_rate(const NcclSystem& system);

/// Channels of one of a double tree's two trees: half of 16, which NCCL takes on nodes of eight
/// Hopper GPUs and NICs. The same everywhere, for what its search finds elsewhere jumps with the
/// bandwidth.
inline constexpr double nccl_tree_channels = 8;

/// GB/s at which a tree's channel passes on what it got, to ranks of so many nodes: half of NCCL's
/// figure, which counts a channel's way up and its way down. Of LL, as nccl_ll_channel_rate().
double nccl_tree_channel_rate(const NcclSystem& system, NcclProtocol protocol, int nodes);

/// GB/s that one channel of LL passes on: NCCL's limit of LL within a node over the channels of a
/// tree. Public logs show 4.6 GB/s on V100, 14 on H100 and 30 on B200, where that is 4.9, 17.6 and
/// 35.
double nccl_ll_channel_rate(const NcclSystem& system);

/// How many bytes of a message with LL one channel sends before a second one helps: 4 KiB (512
/// threads of 8 bytes) of each rank's part in a ring, and 8 KiB in a tree, where NCCL takes whole
/// channels only (src/enqueue.cc topoGetAlgoInfo) and logs show it.
double nccl_ll_channel_bytes(const NcclSystem& system, NcclAlgorithm algorithm);

/// Channels of the communicator that a message of this size takes.
int nccl_channels(const NcclSystem& system, NcclAlgorithm algorithm, NcclProtocol protocol,
                  Bytes size);

/// One row of NCCL's cost table.
struct NcclEstimate {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  Duration latency{};             ///< as it enters the time, plateau factor included
  Bandwidth algorithm_bandwidth;  ///< bytes / transfer time, tree correction included
  int channels = 1;               ///< CTAs used for this size: each takes an SM
  Duration time{};                ///< latency + bytes / algorithm_bandwidth
};

/// NCCL's own time model: every (collective, algorithm, protocol) costs latency + bytes /
/// bandwidth, and the cheapest runs. A ranking tool, not a calibrated clock: its bandwidths come
/// from a search over fixed lists of speeds, so a faster link may look slower, and for two nodes it
/// counts the links inside them alone. Times are those of port_law.hpp. Source:
/// NCCL 2.28.9, src/graph/tuning.cc (constants, ncclTopoTuneModel, ncclTopoGetAlgoTime) and
/// src/enqueue.cc (topoGetAlgoInfo).
class NcclLaw {
 public:
  /// `nvls`: may NVLS be chosen (NCCL_NVLS_ENABLE). Throws std::invalid_argument if a count is
  /// below one.
  explicit NcclLaw(const NcclSystem& system, bool nvls = true);

  /// The algorithm NCCL picks for `size` bytes (as nccl-tests counts them: the whole array), sum on
  /// fp32. One rank: a time of zero.
  NcclEstimate choose(Collective collective, Bytes size) const;

  /// The cost of one combination, or nothing where NCCL has it switched off.
  std::optional<NcclEstimate> estimate(Collective collective, NcclAlgorithm algorithm,
                                       NcclProtocol protocol, Bytes size) const;

  const NcclSystem& system() const { return system_; }

 private:
  struct Cell {
    double latency_us = 0;
    double bandwidth = 0;  ///< algorithm bandwidth, GB/s; 0: not available
  };
  NcclSystem system_;
  bool nvls_;
  /// [collective][algorithm][protocol]
  std::array<std::array<std::array<Cell, all_nccl_protocols.size()>, all_nccl_algorithms.size()>, 5>
      cells_{};
};

}  // namespace ddpsim
