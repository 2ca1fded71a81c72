#pragma once

#include <optional>
#include <variant>

#include "model/cost/calibration.hpp"
#include "model/cost/nccl_law.hpp"

namespace ddpsim {

/// What one all-reduce costs while nothing else runs.
struct CollectiveCost {
  Duration latency{};   ///< the part that does not depend on bandwidth
  Duration transfer{};  ///< moving the bytes; this part slows beside compute (interference.hpp)
  int channels = 0;     ///< SMs NCCL takes meanwhile; 0 on a CPU
  Bandwidth bus;        ///< bus bandwidth during the transfer: 2 (n-1)/n x bytes / transfer

  Duration time() const { return latency + transfer; }
};

/// Ring all-reduce over equal links.
///
///     t = 2 (n - 1) (latency + bytes / (n bandwidth))
///
/// Source: Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 2009, pp. 117-124, for the volume.
struct RingLaw {
  int ranks = 1;
  Duration latency{};
  Bandwidth bandwidth;
};

/// Time of `size` in a measured table: log-log interpolation between its points, and beyond the
/// ends the slope of the last two points (one point: time proportional to size). Zero bytes take
/// the smallest entry's time. Throws std::invalid_argument if the table is empty.
Duration table_time(const AllReduceTable& table, Bytes size);

/// The all-reduce law of a cluster: NCCL's model, latency and bandwidth of a ring, or a measured
/// table. One rank: nothing to send, only the launch.
///
/// NCCL's model does not know that GPUs which may not reach each other over PCIe (GeForce cards,
/// cloud virtual machines) go through host memory: every byte crosses the bus twice. Such a pair
/// gets half of the model's bandwidth here. Public logs: 0.40 of it on 2x RTX 2080 Ti, 0.57 on 4x
/// RTX 5090, and less in containers (tests/model/cost/nccl_logs_test.cpp, which also holds what
/// comes out).
class CollectiveLaw {
 public:
  /// Chooses as `cluster.collectives` says; automatic: the table where the link has one, else
  /// NCCL's model where the link says what it is, else latency and bandwidth. The link that counts
  /// is `inter_node` between several nodes and `intra_node` otherwise; the all-reduces of a
  /// calibration, where the cluster has one, are that link's table. Throws std::invalid_argument if
  /// the law asked for lacks its figures.
  explicit CollectiveLaw(const CalibratedCluster& given);

  CollectiveCost all_reduce(Bytes size) const;

  /// Any collective of `payload` bytes handed to it by each rank; `ranks`: of a subgroup within a
  /// node, 0 for all. Without NCCL's model, half of an all-reduce's steps and bytes: of the payload
  /// for a reduce-scatter or a broadcast, of everyone's together for an all-gather.
  CollectiveCost of(Collective collective, Bytes payload, int ranks = 0) const;

  /// From one rank to all, without call overhead.
  Duration broadcast(Bytes size) const;

  /// Time every call takes on top of the law; found by calibration on a real run, at most as
  /// negative as leaves the bandwidth part. See sim/predict/fit.hpp.
  Duration call_overhead{};

  /// Factors on the two parts of every all-reduce, call overhead included: what if the link were
  /// another? Kernels beside it feel what they felt. See sim/predict/what_if.hpp.
  double latency_factor = 1, transfer_factor = 1;

  /// For people: "nccl", "alpha-beta", "table".
  const char* name() const;

 private:
  CollectiveCost priced(CollectiveCost cost, Collective collective, Bytes size) const;
  CollectiveCost from_nccl(const NcclLaw& law, Collective collective, Bytes size) const;
  CollectiveCost from_table(const AllReduceTable& table, Bytes size) const;

  std::variant<RingLaw, NcclLaw, AllReduceTable> law_;
  std::optional<NcclLaw> channels_;  ///< who says how many SMs are taken
  int ranks_ = 1;
  int table_ranks_ = 0;        ///< ranks the table was measured with; 0: these
  Bandwidth table_peak_;       ///< the best bytes / time of the table
  bool through_host_ = false;  ///< NCCL's model, halved
};

}  // namespace ddpsim
