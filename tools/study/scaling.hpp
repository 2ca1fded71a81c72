#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/predict/fit.hpp"

namespace ddpsim {

/// A step of so many ranks. The batch of each rank stays the same, so there are more samples in a
/// step of more ranks.
struct ScalingPoint {
  int nodes = 1;
  RanksPerNode ranks_per_node;
  Duration step{};
  /// The step of one rank that trains by itself, over this step: 1 is perfect.
  double efficiency = 1;
  std::optional<double> samples_per_second{}, tokens_per_second{};  ///< of all ranks together

  int ranks() const { return ranks_per_node.total(nodes); }
};

/// One strategy over numbers of ranks.
struct ScalingCurve {
  Strategy strategy = Strategy::none;
  /// From few ranks to many. The first is one rank by itself, which averages nothing, whatever the
  /// strategy. Numbers of ranks that the training or a law refuses are left out.
  std::vector<ScalingPoint> points;
  std::string missing;  ///< why the curve lacks points that were asked for; "": it has all
  std::string label{};  ///< the strategy's name for people: short_strategy_label in names.hpp
};

/// 1, 2, 4, ... ranks, up to a whole node; then 2, 4, ... nodes, up to `most_ranks` (none: up to
/// what the cluster has). The cluster's own size is always among them where it is not beyond that.
/// Nodes with unequal numbers of ranks join in the order in which they are listed, and the curve
/// ends with them.
/// Beyond one node a link between nodes is needed, and where there is none the curve ends. A fit of
/// measured rows holds at every size. Throws InputError, of `--scaling`, if `most_ranks` is below 1
/// or above 1048576.
std::vector<ScalingCurve> scaling_curves(const Scenario& scenario,
                                         const std::vector<Strategy>& strategies,
                                         const std::optional<Fit>& fit = {},
                                         std::optional<int> most_ranks = {});

/// The scenario on another number of nodes. A measured table that does not say how many ranks
/// it is of is taken to be of the ranks that the scenario has.
Scenario resized(Scenario scenario, int nodes, RanksPerNode ranks_per_node);

/// Steps that others are held against.
struct ScalingReference {
  // [strategy asked for]
  std::vector<Duration> one_rank{};  ///< one rank that trains by itself
  /// On one node, the largest; empty: there is one node.
  std::vector<Duration> one_node{};
};
/// `model`: of the scenario, with what was fitted to it.
ScalingReference scaling_reference(const Scenario& scenario, const StepModel& model,
                                   const std::vector<Strategy>& strategies,
                                   const std::optional<Fit>& fit);

}  // namespace ddpsim
