#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddpsim {

/// What NCCL says of a communicator with NCCL_DEBUG=INFO, from release 2.10 on: lines such as
///
///     node-1:4978:4990 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA
///
/// of the subsystems INIT, GRAPH, TUNING and COLL, of one or of many ranks. The format is that of
/// NCCL's src/init.cc, src/graph/*.cc, src/transport/*.cc and src/enqueue.cc.

/// An algorithm and a protocol in the table by which NCCL chooses: `latency_us` + size / rate.
struct NcclTableEntry {
  std::string operation, algorithm, protocol;  ///< "AllReduce", "Ring", "Simple"
  double latency_us = 0;
  double gb_per_s = 0;  ///< of the algorithm; 0: NCCL does not take it
};

/// What NCCL took for the collectives of one size.
struct NcclTaken {
  std::string algorithm, protocol;
  int channels = 0;  ///< 0: not said, before 2.24
  std::int64_t times = 0;
};

struct NcclNic {
  std::optional<double> gb_per_s;  ///< the port's rate, as the driver tells NCCL
  double slot_gb_per_s = 0;        ///< of the card's PCIe, as NCCL counts it; 0: not said
};

/// A result of NCCL's search for rings or trees: rates in GB/s of each of `channels`.
struct NcclSearch {
  int channels = 0;
  double intra_gb_per_s = 0, inter_gb_per_s = 0;
  std::string intra_path;  ///< inside of a node: "NVL", "PIX", "SYS"
};

/// What the ranks of one host say of their node.
struct NcclHost {
  int first_rank = 0;          ///< the lowest whose lines are there
  int ranks = 0;               ///< of the node, as NCCL counts them; 0: not said
  int seen = 0;                ///< ranks whose lines are there
  double nvlink_gb_per_s = 0;  ///< of one GPU, as NCCL counts it; 0: no NVLink, or not said
  bool nvswitch = false;
  std::map<std::string, NcclNic> nics, net_nodes;  ///< as NcclLog has them
};

/// The largest communicator of a log.
struct NcclLog {
  std::string version;  ///< "2.18.5"; "" if not said
  int ranks = 0;
  int nodes = 0;           ///< 0: not said, before 2.19
  int ranks_per_node = 0;  ///< of the first rank's node; 0: not said
  std::set<int> seen;      ///< ranks whose lines are there
  std::set<std::string> hosts;
  std::map<std::string, NcclHost> of_hosts;  ///< by the host's name, "" if lines have none
  int channels = 0;                          ///< for collectives; 0: not said
  std::vector<std::vector<int>> rings;       ///< [channel] ranks in order, as far as the line goes
  int trees = 0;                             ///< [channel] how many trees the first rank stands in
  std::map<std::string, std::int64_t> transports;  ///< "NET/IB/GDRDMA": connections
  std::optional<NcclSearch> ring_search, tree_search;
  // What one rank says; what all ranks of a node say is in `of_hosts`.
  double nvlink_gb_per_s = 0;  ///< of one GPU, as NCCL counts it; 0: no NVLink, or not said
  bool nvswitch = false;
  std::string network;                       ///< "IB", "Socket", "AWS Libfabric"; "" if not said
  std::map<std::string, NcclNic> nics;       ///< of one node, by the driver's name and port
  std::map<std::string, NcclNic> net_nodes;  ///< of one node, as the topology has them: "NET/0"
  std::string cpu;                           ///< "intel" or "amd"; "" if not said
  bool infiniband = false, roce = false;
  std::vector<NcclTableEntry> table;
  /// [operation, bytes]
  std::map<std::pair<std::string, std::int64_t>, NcclTaken> taken;
  /// [operation, bytes] how often it was called, by the first rank's COLL lines.
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> calls;
  std::map<std::string, std::string> environment;  ///< NCCL_ALGO, NCCL_PROTO, NCCL_MAX_NCHANNELS
  std::size_t other_communicators = 0;
  bool left_out = false;  ///< more was said than is kept
};

/// Reads files, each of one rank or of several that print in turns. Memory is bounded whatever the
/// files hold. Throws InputError for a file that cannot be read, and where no file has a line of a
/// communicator.
NcclLog read_nccl_log(const std::vector<std::string>& files);

/// How many ranks each of so many nodes has, in the order of their first ranks; a last node whose
/// lines are not there has the ranks that are left. Empty where the log does not tell.
std::vector<int> ranks_of_nodes(const NcclLog& log, int nodes);

/// A line of NCCL, without what stands before: launchers, log stores, the time.
struct NcclLine {
  std::string_view host;     ///< "" if the line does not say
  std::string_view process;  ///< "host:pid", which all lines of a process have
  std::string_view text;     ///< behind "NCCL INFO "
};

/// None for a line of anyone else, and for warnings.
std::optional<NcclLine> nccl_line(std::string_view line);

}  // namespace ddpsim
