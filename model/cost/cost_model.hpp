#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cost/calibrated_times.hpp"
#include "model/cost/collective.hpp"
#include "model/cost/costs.hpp"
#include "model/cost/interference.hpp"

namespace ddpsim {

/// How much longer than the laws say the passes of a real step take.
struct PassFactors {
  double forward = 1, backward = 1, optimizer = 1;
};

/// The one place where work becomes time: every law and every calibration of a cluster.
///
/// Kernels and copies cost what the cluster's calibration says (calibrated_times.hpp), and what it
/// knows nothing of, or where there is none, what the law of kernel_cost.hpp says. On a synchronous
/// device the measured times hold the host's part as well: there is none besides.
class CostModel {
 public:
  /// `step_spread`: the standard deviation of a rank's computation from step to step, as a share of
  /// it; counts where no calibration has measured how much later the slowest rank is.
  explicit CostModel(const CalibratedCluster& cluster, double step_spread = 0);

  /// How long pieces of work take on a typical rank: those of a job. Some prices
  /// are shares of what the passes (indices into `works`) take in all.
  /// Throws std::invalid_argument if the device cannot do some of it.
  Costs price(const std::vector<Work>& works, const Passes& passes) const;

  /// An all-reduce of a bucket.
  CollectiveCost all_reduce(Bytes size) const { return collective.all_reduce(size); }

  /// From here on the ranks are joined by these links, of the kinds they had; all that was fitted
  /// or measured of kernels, and all factors, stay. Throws std::invalid_argument where a
  /// calibration or a table says what all-reduces take.
  void use_links(const Link& intra_node, const Link& inter_node);
  /// From here on every link and every NIC has twice its bandwidth. Slots of NICs, what kernels
  /// load from the memory of hosts, and what channels and latency take, stay.
  /// Where a table says what all-reduces take, its transfers take half the time, and kernels beside
  /// them feel what they felt.
  void double_links();

  /// Does any rank compute slower or otherwise than a typical one?
  bool has_uneven_ranks() const { return slowest_rank > 1 || !exceptions.empty(); }
  /// Is any rank or NIC another than the cluster says?
  bool has_exceptions() const { return !cluster_.exceptions.empty(); }
  /// From here on every rank computes as a typical one does. (NICs stay as they are.)
  void make_ranks_even();
  /// From here on no rank and no NIC is another than the cluster says.
  void take_out_exceptions();

  /// The laws, with what is fitted to measured rows in them.
  Launch launch;
  CollectiveLaw collective;
  InterferenceLaw interference;
  /// On the device times of the passes, one after the other; the host times follow where the host
  /// bounds the pass, or the factor is below one.
  std::vector<PassFactors> passes;
  double copy_factor = 1;    ///< on device times of all other kernels: copies, divisions, hooks
  bool free_launch = false;  ///< what if the host took no time to enqueue?

  bool synchronous = false;         ///< kernels run on the host thread
  double backward_beside_hook = 1;  ///< as in Calibration
  /// How much longer than a typical one's the computation of the slowest rank takes that is no
  /// exception.
  double slowest_rank = 1;
  std::vector<RankException> exceptions;  ///< those that compute otherwise
  /// The shortest step there is, whatever it computes: the time in which a node makes its ranks'
  /// batches.
  Duration least_step{};
  int ranks = 1;
  int ranks_per_node = 1;  ///< of the largest node

 private:
  /// Laws of collectives among some ranks, by how many these are and by their stride.
  using GroupLaws = std::map<std::pair<std::int32_t, std::int32_t>, CollectiveLaw>;

  WorkCost cost_of(const Work& work, GroupLaws& groups) const;
  WorkCost kernel(const Work& work) const;
  WorkCost collective_cost(const Work& work, GroupLaws& groups) const;
  WorkCost host_only(const Work& work) const;
  Duration wait_for(Operation collective) const;
  CollectiveCost among(const Work& work, GroupLaws& groups) const;
  FilledLinks links_of(const Work& work) const;
  std::optional<CalibratedCluster> across_nodes(std::int32_t group, std::int32_t stride) const;
  void renew_laws();
  void scale_passes(const std::vector<Work>& works, const Passes& passes, Costs& costs) const;
  void share_optimizer(const std::vector<Work>& works, const Passes& passes, Costs& costs) const;

  CalibratedCluster cluster_;
  std::shared_ptr<const CalibratedTimes> measured_;  ///< of the calibration; null: none
  CollectiveLaw buffers_;  ///< broadcasts of buffers stay what they are, whatever is fitted
};

/// By how much computing times of ranks differ, as standard deviations and as shares of them.
struct RankSpread {
  double lasting = 0;   ///< between ranks, the same in every step
  double changing = 0;  ///< of each rank, from step to step

  double together() const;
};
/// As measured in the job itself, where a calibration says so (the part that `jitter` does not
/// explain lasts); else by the cluster's jitter and skew; where it has no jitter, by a profile's
/// spread from step to step (0: unknown) in place of both.
RankSpread rank_spread(const CalibratedCluster& cluster, double step_spread);

/// How many times as long as a typical rank's the slowest one's computation takes, in the mean
/// of many steps: as measured in the job itself, where a calibration says so; else as is expected
/// of so many ranks that differ by rank_spread. One rank: 1. Exceptions count as ranks here: a rank
/// that is known to be slower makes no step shorter.
double slowest_rank(const CalibratedCluster& cluster, double step_spread);

/// Where the pace of the slowest rank is known from.
enum class SkewSource : std::uint8_t {
  calibration,  ///< measured in the job itself
  profile,      ///< its spread from step to step
  scenario,     ///< the cluster's skew, as the scenario says, and its jitter
  assumed,      ///< the usual skew, as nobody said any, and the cluster's jitter
};
SkewSource skew_source(const CalibratedCluster& cluster, double step_spread);
std::string_view name_of(SkewSource source);

/// How long a job's work takes on a cluster, by its laws or its calibration.
Costs price(const program::Job& job, const CalibratedCluster& cluster);

}  // namespace ddpsim
