#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"
#include "model/cluster/collective_choice.hpp"
#include "model/cluster/launch.hpp"
#include "model/cluster/rank_exception.hpp"
#include "model/cluster/ranks_per_node.hpp"

namespace ddpsim {

class OperationTable;  // model/kernel/operation_table.hpp
struct StepConstants;  // model/kernel/step_constants.hpp

/// One accelerator (or CPU) as its data sheet and published measurements describe it.
struct Device {
  std::string name;
  std::string source;
  int compute_capability = 0;  ///< CUDA's, times ten (90 = 9.0); 0: not a CUDA device
  int multiprocessors = 1;     ///< SMs; cores on a CPU
  Bytes memory;
  Bandwidth memory_bandwidth;      ///< peak, reads and writes together
  double memory_efficiency = 0.9;  ///< of the peak, reached by streaming kernels
  /// [dtype], dense; zero: the device lacks the type.
  std::array<FlopRate, all_dtypes.size()> peak;
  std::array<double, all_dtypes.size()> gemm_efficiency;  ///< [dtype], of the peak, large GEMMs
  /// Can GPUs copy to each other over PCIe (else NCCL goes through the host).
  bool peer_to_peer = true;
  bool synchronous = false;  ///< kernels run on the host thread (a CPU)
  /// Single operations that were measured on it, or on another device whose times are scaled; null:
  /// the laws alone price kernels.
  std::shared_ptr<const OperationTable> operations{};
  /// The constants of the laws of kernels; null: those that ddpsim has.
  std::shared_ptr<const StepConstants> step_constants{};

  FlopRate peak_of(DType type) const { return peak[static_cast<std::size_t>(type)]; }
  double efficiency_of(DType type) const { return gemm_efficiency[static_cast<std::size_t>(type)]; }
};

enum class LinkKind : std::uint8_t { plain, nvlink, pcie, ethernet, infiniband };
inline constexpr std::array all_link_kinds{LinkKind::plain, LinkKind::nvlink, LinkKind::pcie,
                                           LinkKind::ethernet, LinkKind::infiniband};
constexpr std::string_view name_of(LinkKind kind) {
  constexpr std::array<std::string_view, 5> names{"plain", "nvlink", "pcie", "ethernet",
                                                  "infiniband"};
  return names[static_cast<std::size_t>(kind)];
}

/// A measured all-reduce time of one size. Strictly increasing sizes, positive times.
using AllReduceTable = std::vector<std::pair<Bytes, Duration>>;

/// What connects devices inside a node, or nodes.
struct Link {
  std::string name;
  std::string source;
  LinkKind kind = LinkKind::plain;
  std::string kind_from{};  ///< the link in whose place it stands and whose kind it keeps; "": none
  /// The latency of one step of a ring; usual_latency says how NCCL's other steps follow from it.
  Duration latency{};
  Bandwidth bandwidth;  ///< per direction and device (inside a node) or per NIC (between nodes)
  Bandwidth nccl_bandwidth;  ///< per device, what NCCL's search assumes for it; zero: `bandwidth`
  /// The share of the bandwidth that large messages reach; 0: the share that its kind reaches.
  double carries = 0;
  bool nvswitch = false;  ///< every GPU reaches every other at full speed, and NVLS can exist
  int joins = 0;          ///< devices that it joins at most; 0: any number
  int nics = 0;           ///< NICs per node; 0: one per rank (InfiniBand) or one per node (others)
  AllReduceTable all_reduce;          ///< measured; empty: none
  int table_ranks = 0;                ///< ranks the table was measured with; 0: not said
  int table_nodes = 0;                ///< nodes that these ranks were on; 0: not said
  int table_smallest_node = 0;        ///< ranks of the smallest of them; 0: all had as many
  std::vector<std::string> doubts{};  ///< why the table is of little use, a sentence each
};

/// The latency of a link of which only the kind is known: one step of NCCL's ring with its Simple
/// protocol, GPU to GPU. Source: NCCL 2.28.9, src/graph/tuning.cc, hwLatencies.
constexpr Duration usual_latency(LinkKind kind) {
  switch (kind) {
    case LinkKind::plain:
      return {};
    case LinkKind::nvlink:
      return std::chrono::nanoseconds{3400};
    case LinkKind::pcie:
      return std::chrono::nanoseconds{5700};
    case LinkKind::ethernet:
    case LinkKind::infiniband:
      return std::chrono::microseconds{14};
  }
  return {};
}

enum class CollectiveModel : std::uint8_t { automatic, nccl, alpha_beta, table, gloo };
inline constexpr std::array all_collective_models{CollectiveModel::automatic, CollectiveModel::nccl,
                                                  CollectiveModel::alpha_beta,
                                                  CollectiveModel::table, CollectiveModel::gloo};
constexpr std::string_view name_of(CollectiveModel model) {
  constexpr std::array<std::string_view, 5> names{"auto", "nccl", "alpha-beta", "table", "gloo"};
  return names[static_cast<std::size_t>(model)];
}

enum class CpuVendor : std::uint8_t { intel, amd };
inline constexpr std::array all_cpu_vendors{CpuVendor::intel, CpuVendor::amd};
constexpr std::string_view name_of(CpuVendor cpu) {
  return cpu == CpuVendor::intel ? "intel" : "amd";
}

/// How much each side slows while compute and communication are both active; 1 is not at all.
struct FixedInterference {
  double compute_slowdown = 1;
  double communication_slowdown = 1;
};

/// How much ranks differ in computing time where a scenario says nothing: the standard deviation,
/// as a share, for input that is ready when a step begins, and for pictures that the hosts decode
/// meanwhile. Both are what eight GPUs of one host lose of eight times one GPU's rate, as if the
/// slowest rank took all of it, in public runs that no other constant comes from
/// (tests/data/input_pipelines.csv), to a quarter of a per cent. Clocks and silicon of GPUs of one
/// model in several clusters spread by more (arXiv 2208.11035: 8 % from end to end); one rank from
/// step to step by 0.2 to 0.4 % (github:adamdivak/distrain@d34dada), even data on even GPUs by
/// 0.5 % (ByteDance-Seed/StragglerAnalysis).
inline constexpr double usual_skew = 0.005, usual_skew_of_decoded_input = 0.035;

struct Cluster {
  Device device;
  int nodes = 1;
  RanksPerNode ranks_per_node;  ///< of as many nodes
  Link intra_node;
  Link inter_node;
  CpuVendor cpu = CpuVendor::intel;
  CollectiveModel collectives = CollectiveModel::automatic;
  ForcedChoice forced;                            ///< counts where they are NCCL's or Gloo's
  std::optional<FixedInterference> interference;  ///< none: the law of interference.hpp
  double skew = 0;  ///< standard deviation of the ranks' computing times, as a share of them
  bool skew_is_usual = false;  ///< nobody said so: it depends on where batches come from
  /// How much each rank's computing time changes from step to step: the standard deviation, as a
  /// share of it. None: as a profile's step_spread says, else not at all.
  std::optional<double> jitter{};
  /// Ranks that are not as the rest of this says, each rank in one of them at most.
  std::vector<RankException> exceptions{};
  Launch launch;
  int collectives_at_once = 1;  ///< of one communicator; PyTorch's Gloo: 2
  /// Collectives run on the hosts, over copies out of GPUs and back at this rate (PyTorch's Gloo
  /// with CUDA tensors); none: on the devices.
  std::optional<Bandwidth> through_host;

  int ranks() const { return ranks_per_node.total(nodes); }
};

/// What the slowest NIC of any node carries.
inline Bandwidth slowest_nic(const Cluster& cluster) {
  Bandwidth slowest = cluster.inter_node.bandwidth;
  for (const RankException& exception : cluster.exceptions)
    if (exception.nic) slowest = std::min(slowest, *exception.nic);
  return slowest;
}

/// NICs of a node of so many ranks: one for each rank on InfiniBand and one on other networks,
/// unless the link says.
inline int nics_of_node(const Cluster& cluster, int ranks) {
  if (cluster.inter_node.nics > 0) return cluster.inter_node.nics;
  return cluster.inter_node.kind == LinkKind::infiniband ? ranks : 1;
}

/// NICs of the node that has the fewest.
inline int nics_per_node(const Cluster& cluster) {
  return nics_of_node(cluster, cluster.ranks_per_node.smallest());
}

}  // namespace ddpsim
