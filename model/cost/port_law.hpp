#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "model/cost/nccl_choice.hpp"
#include "model/cost/nccl_chunks.hpp"
#include "model/cost/nccl_law.hpp"

namespace ddpsim {

/// The fitted constants of PortLaw: what of its line rate each kind of link carries, unless a link
/// says so itself (Link::carries), and what a kernel's start takes beside NCCL's own figures.
struct PortConstants {
  // Shares under the protocol Simple, whose bytes are all data.
  double nvlink = 1, pcie = 1;
  double network = 1;  ///< of a NIC's port, InfiniBand or Ethernet: RoCE sends InfiniBand's packets
  double host = 1;     ///< of PCIe, where GPUs copy through the host's memory, twice over the bus
  /// Bytes/s that a GPU's kernels load from there, up to PCIe 4.
  double through_host = 2.6e9;
  double nvls = 1;  ///< of an NVLink port, where the switch adds up (Hopper)
  /// What rings of all-gathers and reduce-scatters reach of NVLink on Blackwell, of what they do on
  /// Hopper.
  double blackwell = 1;
  /// The share of the time that a rank's own part of an all-gather takes where it is copied, which
  /// it takes in place.
  double in_place = 1;
  double start_us = 0;  ///< a kernel's launch, in a row of them, until its first step
};

/// The constants that were fitted to public sweeps; see port_law.cpp.
const PortConstants& fitted_ports();

/// Bytes/s on the bus of large rings between GPUs of a node that reach each other through the
/// host's memory (`through_host`): what the link `carries`, where it says so; else what kernels
/// load from there, or half of what the lanes carry.
Bandwidth bus_through_host(const Cluster& cluster);

/// What public hosts move on the bus where kernels load from the host's memory.
struct HostRates {
  Bandwidth slowest, assumed, quickest;
};
/// Where bus_through_host is assumed, not known of this host: between GPUs of PCIe 3 and 4 whose
/// link does not say what it `carries`. No host is quicker than the lanes. None elsewhere.
std::optional<HostRates> assumed_host_rates(const Cluster& cluster);

/// NCCL's collectives, priced by the bytes that cross each port.
///
///     t = start + steps + chunk x sum over hops of 1 / (share x line rate)
///         + size x max over ports of (bytes per byte / (share x line rate))
///
/// The third term is a pipeline that fills: each hop of a tree, and NVLS, passes a chunk on when it
/// is there (nccl_chunks.hpp), so the last hop begins that much later; what a channel moves bounds
/// a tree's hops too. A message of a few KiB with LL is sent by one channel, and takes no less than
/// its bytes over all hops at that channel's rate.
///
/// The ring of an all-gather or a reduce-scatter has n steps, in n - 1 of which a rank sends: in
/// the other its kernel copies the rank's own part, or adds it up, at what an SM moves within a GPU
/// (nccl_copy_rate). Its smallest messages wait for the network once for each node, where NCCL's
/// model counts one node less.
///
/// A port is what joins a GPU to the others of its node (NVLink, or PCIe), a GPU's way to the NICs,
/// or a node's NICs. How many bytes cross it is a matter of the algorithm alone; line rates are the
/// data sheet's. Steps are those of NCCL's model (nccl_law.hpp), on links of the `latency` given:
/// below the usual latency of the link's kind a step shrinks in proportion, above it every step
/// takes that much more.
///
/// The quickest of the combinations that NCCL offers runs, by these times; but where NCCL's tuner
/// takes an NVLS tree though a tree is quicker (nccl_choice.hpp), an NVLS tree runs. NCCL's model
/// cannot be the price as well: its search rounds speeds to a list, so more bandwidth may cost more
/// time, and below the list all links are alike. Each of these times falls with bandwidth and grows
/// with size and latency, and so does the least of several.
///
/// NCCL 2.4 takes a tree below a threshold that grows with the number of ranks, and is published
/// nowhere: here as long as a tree's steps take longer than its bytes. It sends all else by rings,
/// so between two nodes nearly twice the bytes that a tree would. From 2.5 on NCCL ranks by
/// estimates (github.com/NVIDIA/nccl/issues/457 and 754).
///
/// If nodes have unequal numbers of ranks, NCCL takes as many channels in each node as the node
/// with the fewest has (src/init.cc: the least of all ranks), so the narrowest node sets the pace
/// of all; rings pass every rank, and a tree's chain is as long as the largest node's. NVLS is not
/// taken there: with 7 and 8 ranks NCCL 2.31.2 waited for ever until NVLS was switched off
/// (github.com/NVIDIA/nccl/issues/2385).
///
/// With CtaPolicy::zero a gather within a node of an NVSwitch goes by copy engines, which take no
/// channels: each rank copies its part to every other, one copy after the other, each of which
/// takes a time to begin, and together they reach less of a port than kernels do.
///
/// Limits besides ports: the flags of LL (NCCL's llMaxBw), the channels a scenario allows, and,
/// between GPUs that cannot copy to each other, how fast kernels load from the host's memory.
/// Sources: NCCL 2.28.9, src/graph/tuning.cc; for the bytes, collective_ports.hpp.
class PortLaw {
 public:
  struct Price {
    Duration latency{};   ///< start, steps, and the first chunk's way
    Duration filling{};   ///< of it, the first chunk's way
    Duration transfer{};  ///< the bytes through the narrowest port
    CollectiveChoice choice;

    Duration time() const { return latency + transfer; }
  };

  /// Throws std::invalid_argument if there is nothing to choose from: a forced choice that NCCL
  /// does not offer here, or a link that has no bandwidth. `known`: of
  /// nvls_tree_sizes(), if another law of this cluster, on links of the same kinds, has them.
  explicit PortLaw(const Cluster& cluster, const PortConstants& constants = fitted_ports(),
                   const std::optional<NvlsTreeSizes>& known = {});

  /// For which all-reduces NCCL takes an NVLS tree; none where an algorithm is forced.
  const NvlsTreeSizes& nvls_tree_sizes() const { return nvls_tree_; }

  /// What NCCL runs for `size` bytes (the whole array, as nccl-tests counts). One rank: nothing.
  Price chosen(Collective collective, Bytes size) const;

  /// The price of one combination; none if NCCL does not offer it.
  std::optional<Price> price(Collective collective, NcclAlgorithm algorithm, NcclProtocol protocol,
                             Bytes size) const;

  /// Seconds that a byte of the collective takes through the algorithm's narrowest port at line
  /// rate, and which port that is: no time is below that.
  struct Narrowest {
    double seconds_per_byte = 0;
    CollectiveBound port = CollectiveBound::port;
  };
  static Narrowest narrowest(const Cluster& cluster, Collective collective,
                             NcclAlgorithm algorithm);

 private:
  struct Candidate {
    NcclAlgorithm algorithm = NcclAlgorithm::ring;
    NcclProtocol protocol = NcclProtocol::simple;
    CollectiveBound bound = CollectiveBound::port;  ///< of the bytes
    double start = 0;                               ///< seconds: the kernel's start, and steps
    double hops = 0;                                ///< seconds per byte of a chunk
    double alone = 0;        ///< seconds per byte over all hops, by one channel (LL)
    double alone_bytes = 0;  ///< the most that a message sends by one alone
    bool copy_engines = false;
    double seconds_per_byte = 0;
    NcclChunks chunks{};

    double filling(double size) const { return chunks.of(size) * hops; }
    double time(double size) const {
      return start +
             std::max(filling(size) + size * seconds_per_byte, std::min(size, alone_bytes) * alone);
    }
  };
  static constexpr std::size_t most_candidates = 10;
  struct Candidates {
    std::array<Candidate, most_candidates> of;
    std::size_t count = 0;
  };
  Price price(const Candidate& candidate, double bytes) const;
  const Candidate& quickest(const Candidates& candidates, double bytes) const;
  Price of_nvls_tree(double bytes) const;

  NcclSystem system_;
  int nics_ = 0;
  std::optional<int> most_channels_;
  bool only_short_trees_ = false;                                ///< NCCL 2.4
  std::array<Candidates, all_collectives.size()> candidates_{};  ///< [collective]
  NvlsTreeSizes nvls_tree_;                                      ///< among all-reduces
  double nvls_tree_line_ = 0;  ///< seconds per byte through its narrowest port at line rate
};

}  // namespace ddpsim
