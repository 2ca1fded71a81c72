#include "tools/study/scaling.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "sim/predict/loss.hpp"
#include "sim/predict/predict.hpp"
#include "tools/study/names.hpp"
#include "tools/study/throughput.hpp"

namespace ddpsim {
namespace {

constexpr int most_asked = 1 << 20;

struct Size {
  int nodes = 1;
  RanksPerNode ranks_per_node;
  int ranks() const { return ranks_per_node.total(nodes); }
};

bool is_there(const Link& link) {
  return link.bandwidth.bytes_per_second > 0 || !link.all_reduce.empty();
}

/// Powers of two below `last`, then `last`.
std::vector<int> doubling(int last) {
  std::vector<int> counts;
  for (int count = 1; count < last; count *= 2) counts.push_back(count);
  counts.push_back(last);
  return counts;
}

/// The sizes of nodes that differ: the first of them by its ranks, then 2, 4, ... nodes, then all.
std::vector<Size> sizes_of_unequal(const CalibratedCluster& cluster, int most,
                                   std::string& missing) {
  const RanksPerNode& ranks = cluster.ranks_per_node;
  std::vector<Size> sizes;
  for (const int of_first : doubling(std::min(ranks.of_each().front(), most)))
    sizes.push_back({1, of_first});
  for (const int nodes : doubling(cluster.nodes))
    if (Size size{nodes, ranks.first(nodes)}; nodes > 1 && size.ranks() <= most)
      sizes.push_back(std::move(size));
  if (const int last = sizes.back().ranks(); last < most)
    missing = fmt::format("the curve ends at {} rank{}: {} are not the first nodes of {}", last,
                          last == 1 ? "" : "s", most, to_string(ranks));
  return sizes;
}

std::vector<Size> sizes_of(const CalibratedCluster& cluster, int most, std::string& missing) {
  if (!cluster.ranks_per_node.equal()) return sizes_of_unequal(cluster, most, missing);
  const int of_node = cluster.ranks_per_node.largest();
  std::vector<Size> sizes;
  for (const int ranks : doubling(std::min(of_node, most))) sizes.push_back({1, ranks});
  const int nodes = most / of_node;
  if (nodes < 2) {
    if (of_node < most)
      missing = fmt::format("the curve ends at {} rank{}: {} ranks do not fill whole nodes of {}",
                            of_node, of_node == 1 ? "" : "s", most, of_node);
    return sizes;
  }
  if (cluster.nodes == 1 && !is_there(cluster.inter_node)) {
    missing = fmt::format("the curve ends at {} rank{}: the cluster has no link between nodes",
                          of_node, of_node == 1 ? "" : "s");
    return sizes;
  }
  std::vector<int> counts = doubling(nodes);
  if (cluster.nodes < nodes) counts.push_back(cluster.nodes);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const int count : counts)
    if (count > 1) sizes.push_back({count, of_node});
  if (nodes * of_node < most)
    missing = fmt::format("the curve ends at {} ranks: {} ranks do not fill whole nodes of {}",
                          nodes * of_node, most, of_node);
  return sizes;
}

/// The steps of a scenario at its own size, with what was fitted at another.
StepModel fitted_model(const Scenario& scenario, const std::optional<Fit>& fit) {
  StepModel model = model_of(scenario);
  if (fit) apply(*fit, model.costs);
  return model;
}

Duration step_under(const StepModel& model, Training training, Strategy strategy) {
  training.strategy = strategy;
  return predict(model, training).metrics.step;
}

ScalingPoint point_of(const Scenario& scenario, Duration step, Duration one_rank) {
  ScalingPoint point{scenario.cluster.nodes, scenario.cluster.ranks_per_node, step};
  point.efficiency = in_seconds(one_rank) / in_seconds(step);
  if (const auto samples = samples_of(scenario, scenario.training)) {
    point.samples_per_second = samples->samples / in_seconds(step);
    if (samples->tokens) point.tokens_per_second = *samples->tokens / in_seconds(step);
  }
  return point;
}

/// [strategy] The step of one rank that trains by itself: it averages nothing, but its passes are
/// those of the strategy's mixed precision.
template <typename StepOf>
std::vector<Duration> alone_under(const std::vector<Strategy>& strategies, Training training,
                                  StepOf&& step_of) {
  training.strategy = Strategy::none;
  const Duration in_stored_types = step_of(training);
  std::vector<Duration> steps;
  for (const Strategy strategy : strategies) {
    training.strategy = strategy;
    steps.push_back(training.casts_parameters() ? step_of(training.without_communication())
                                                : in_stored_types);
  }
  return steps;
}

/// One rank has nobody to run out of inputs before it.
Scenario alone(const Scenario& scenario) {
  Scenario one = resized(scenario, 1, 1);
  one.cluster.exceptions.clear();
  one.training.join.reset();
  one.training = one.training.without_communication();
  return one;
}

}  // namespace

Scenario resized(Scenario scenario, int nodes, RanksPerNode ranks_per_node) {
  CalibratedCluster& cluster = scenario.cluster;
  for (Link* link : {&cluster.intra_node, &cluster.inter_node})
    if (!link->all_reduce.empty() && link->table_ranks == 0) link->table_ranks = cluster.ranks();
  cluster.nodes = nodes;
  cluster.ranks_per_node = std::move(ranks_per_node);
  // Exceptions among the ranks that are there.
  const int ranks = cluster.ranks();
  std::erase_if(cluster.exceptions, [&](const RankException& exception) {
    return exception.rank >= ranks || (exception.nic && exception.node >= nodes);
  });
  for (RankException& exception : cluster.exceptions)
    exception.ranks = std::min(exception.ranks, ranks - exception.rank);
  return scenario;
}

std::vector<ScalingCurve> scaling_curves(const Scenario& scenario,
                                         const std::vector<Strategy>& strategies,
                                         const std::optional<Fit>& fit,
                                         std::optional<int> most_ranks) {
  if (most_ranks && (*most_ranks < 1 || *most_ranks > most_asked))
    throw InputError(fmt::format("--scaling: expected a number of ranks from 1 to {}, got {}",
                                 most_asked, *most_ranks));
  std::vector<ScalingCurve> curves;
  std::string missing;
  const std::vector<Size> sizes =
      sizes_of(scenario.cluster, most_ranks.value_or(scenario.cluster.ranks()), missing);
  const Scenario one = alone(scenario);
  const StepModel model_of_one = fitted_model(one, fit);
  const std::vector<Duration> one_rank = alone_under(
      strategies, one.training,
      [&](const Training& training) { return predict(model_of_one, training).metrics.step; });
  Training training = scenario.training;
  for (std::size_t s = 0; s < strategies.size(); ++s) {
    training.strategy = strategies[s];
    curves.push_back({strategies[s],
                      {point_of(one, one_rank[s], one_rank[s])},
                      missing,
                      short_strategy_label(training)});
  }
  for (const Size& size : sizes) {
    if (size.ranks() == 1) continue;
    const Scenario larger = resized(scenario, size.nodes, size.ranks_per_node);
    std::string problem;
    const auto refuse = [&](ScalingCurve& curve, const std::exception& error) {
      if (curve.missing.empty())
        curve.missing = fmt::format("{} ranks: {}", size.ranks(), error.what());
    };
    try {
      const StepModel model = fitted_model(larger, fit);
      for (std::size_t s = 0; s < curves.size(); ++s) try {
          const Duration step = step_under(model, larger.training, curves[s].strategy);
          curves[s].points.push_back(point_of(larger, step, one_rank[s]));
        } catch (const std::invalid_argument& error) {
          refuse(curves[s], error);
        }
    } catch (const std::invalid_argument& error) {
      for (ScalingCurve& curve : curves) refuse(curve, error);
    }
  }
  return curves;
}

ScalingReference scaling_reference(const Scenario& scenario, const StepModel& model,
                                   const std::vector<Strategy>& strategies,
                                   const std::optional<Fit>& fit) {
  ScalingReference reference;
  reference.one_rank = alone_under(strategies, scenario.training, [&](const Training& training) {
    return one_rank_step(model, training);
  });
  if (scenario.cluster.nodes == 1) return reference;
  try {
    const StepModel node =
        fitted_model(resized(scenario, 1, scenario.cluster.ranks_per_node.largest()), fit);
    for (const Strategy strategy : strategies)
      reference.one_node.push_back(step_under(node, scenario.training, strategy));
  } catch (const std::invalid_argument&) {  // one node of it cannot train so
    reference.one_node.clear();
  }
  return reference;
}

}  // namespace ddpsim
