#pragma once

#include <optional>
#include <variant>

#include "model/cost/calibration.hpp"
#include "model/cost/gloo_law.hpp"
#include "model/cost/measured_collectives.hpp"
#include "model/cost/port_law.hpp"

namespace ddpsim {

/// What one all-reduce costs while nothing else runs.
struct CollectiveCost {
  Duration latency{};   ///< all but the transfer
  Duration transfer{};  ///< moving the bytes; this part slows beside compute (interference.hpp)
  int channels = 0;     ///< SMs NCCL takes meanwhile; 0 on a CPU
  Bandwidth bus;        ///< bus bandwidth during the transfer: 2 (n-1)/n x bytes / transfer
  /// The part of `latency` until the first chunk has passed all hops of a tree or of NVLS. Bytes
  /// are under way meanwhile, so a faster link shortens it.
  Duration filling{};
  CollectiveChoice choice{};  ///< how it runs, and what bounds it

  Duration time() const { return latency + transfer; }
};

/// Factors on the parts of every collective's cost, call overhead included.
struct LinkChange {
  double latency = 1;  ///< of all of it but the filling
  double filling = 1, transfer = 1;
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
  int nics = 0;  ///< of a node; 0: one node
  CollectiveBound narrowest = CollectiveBound::port;
};

/// Time of `size` in a measured table: between two points a latency and a bandwidth, the straight
/// line that joins them. Above the last point the line through it and the largest of at most half
/// its size goes on, but no steeper than the table's best bytes over time; below the first the
/// first two do, and no lower than in proportion to the size. One point: time proportional to size.
/// Where times fall, the line is level. Throws std::invalid_argument if the table is empty.
Duration table_time(const AllReduceTable& table, Bytes size);

/// The table with every point that takes longer than a larger one lowered to that one: more bytes
/// never take less time, and what disturbs a measurement only lengthens it.
AllReduceTable growing(AllReduceTable table);

/// The all-reduce law of a cluster: NCCL by its ports (port_law.hpp), Gloo by its ports
/// (gloo_law.hpp), latency and bandwidth of a ring, or a measured table. One rank: nothing to send,
/// only the launch.
class CollectiveLaw {
 public:
  /// Chooses as `cluster.collectives` says; automatic: the table where the link has one, else
  /// NCCL's model where the link says what it is, else latency and bandwidth. The link that counts
  /// is `inter_node` between several nodes and `intra_node` otherwise; the all-reduces of a
  /// calibration, where the cluster has one, are that link's table. Throws std::invalid_argument if
  /// the law asked for lacks its figures.
  /// `known`: of nvls_tree_sizes(), if another law of this cluster, on links of the same kinds, has
  /// them.
  explicit CollectiveLaw(const CalibratedCluster& given,
                         const std::optional<NvlsTreeSizes>& known = {});

  /// PortLaw::nvls_tree_sizes, where NCCL's law prices; none under other laws.
  std::optional<NvlsTreeSizes> nvls_tree_sizes() const;

  CollectiveCost all_reduce(Bytes size) const;

  /// Any collective of `payload` bytes handed to it by each rank; `ranks`: of a subgroup within a
  /// node, 0 for all. As the calibration measured the kind, among other ranks scaled by the law of
  /// a ring, and beyond the sizes that were measured as its law grows. If it did not: without
  /// NCCL's model, half of an all-reduce's steps and bytes: of the payload for a reduce-scatter, an
  /// all-to-all or a broadcast, of everyone's together for an all-gather. PyTorch's Gloo makes a
  /// reduce-scatter of an all-reduce, all of it. A message from one rank to another takes one step
  /// and its bytes.
  /// Source: pytorch 0069b72, ProcessGroupGloo.cpp, whose reduce-scatters call allreduce and copy
  /// this rank's part.
  CollectiveCost of(Operation operation, Bytes payload, int ranks = 0) const;

  /// The time of a broadcast from one rank to all, without the overhead of the call.
  Duration broadcast(Bytes size) const;

  /// Time every call takes on top of the law; found by calibration on a real run, at most as
  /// negative as leaves the bandwidth part. See sim/predict/fit.hpp.
  Duration call_overhead{};

  /// What if collectives took another time? Kernels beside them feel what they felt.
  LinkChange change;

  /// For people: "nccl", "gloo", "alpha-beta", "table".
  const char* name() const;

 private:
  CollectiveCost priced(CollectiveCost cost, Collective collective, Bytes size) const;
  CollectiveCost by_law(Operation operation, Bytes payload, int ranks) const;
  CollectiveCost as_measured(const CollectiveTable& table, Bytes payload, int ranks) const;
  void take_measured(const Calibration& calibration);
  CollectiveCost from_ports(const PortLaw& law, Collective collective, Bytes size) const;
  CollectiveCost from_ring(const RingLaw& ring, Bytes size) const;
  static CollectiveCost from_gloo(const GlooLaw& law, Bytes size);
  CollectiveCost from_table(const AllReduceTable& table, Bytes size) const;

  std::variant<RingLaw, PortLaw, GlooLaw, AllReduceTable> law_;
  std::optional<NcclLaw> channels_;  ///< who says how many SMs are taken
  int ranks_ = 1;
  bool scatters_by_all_reduce_ = false;
  AllReduceTable streamed_;       ///< what each of a stream takes; empty: not known
  int table_ranks_ = 0;           ///< ranks the table was measured with; 0: these
  double over_nics_ = 1;          ///< what its transfers take over a slower NIC
  Bandwidth table_peak_;          ///< the best bytes / time of both
  MeasuredCollectives measured_;  ///< beside that table, where it is a calibration's
};

}  // namespace ddpsim
