#include "tools/report/reports/said_notes.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/idle_keys.hpp"
#include "tools/report/reports/idle_links.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/report/reports/shard_report.hpp"
#include "tools/report/reports/shared_update.hpp"
#include "tools/report/reports/tune_report.hpp"
#include "tools/study/carried_fit.hpp"
#include "tools/study/far_rows.hpp"
#include "tools/study/file_notes.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/memory_advice.hpp"
#include "tools/study/table_ranks.hpp"

namespace ddpsim {
namespace {

constexpr int ranks_by_nvswitch = 8;  // of the smallest node that has one

/// What differs among the ranks of the one node that steps are held against.
std::vector<std::string> slow_reference_notes(const Comparison& run) {
  if (run.reference.one_node.empty()) return {};
  const CalibratedCluster& cluster = run.scenario.cluster;
  std::vector<std::string> names;
  for (const RankException& exception : cluster.exceptions)
    if (exception.computes_otherwise() && exception.rank < cluster.ranks_per_node.largest())
      names.push_back(name_of(exception));
  if (names.empty()) return {};
  const std::size_t others = names.size() - 1;
  const std::string more =
      others == 0 ? "" : fmt::format(" and {} other{}", others, others == 1 ? "" : "s");
  return {fmt::format(
      "of 1 node (scaling_efficiency_node): the node that steps are held against has {}{} "
      "(cluster.exceptions) in it, so that this share does not show what {} costs; of 1 rank is "
      "without exceptions",
      names.front(), more, others == 0 ? "that" : "each")};
}

}  // namespace

void add_each_once(std::vector<std::string>& notes, std::vector<std::string> more) {
  for (std::string& line : more)
    if (std::find(notes.begin(), notes.end(), line) == notes.end())
      notes.push_back(std::move(line));
}

std::vector<std::string> scenario_notes(const Scenario& scenario, const std::string& file,
                                        const std::vector<Setting>& set) {
  std::vector<std::string> notes;
  add_each_once(notes, file_notes(file, set));
  add_each_once(notes, lost_accuracy_notes());
  add_each_once(notes, cluster_notes(scenario, set));
  return notes;
}

std::vector<std::string> idle_strategy_notes(const Scenario& scenario,
                                             const std::vector<Setting>& set) {
  const Strategy strategy = scenario.training.strategy;
  if (!is_set(set, "training.strategy") || scenario.compare == std::vector{strategy}) return {};
  // A step that is sharded is compared where nothing else was asked for.
  if (shards(strategy) && std::ranges::count(scenario.compare, strategy) > 0) return {};
  return {fmt::format(
      "training.strategy: {0} changes nothing here: `compare` says which strategies are predicted "
      "(--set compare=[{0}])",
      name_of(strategy))};
}

std::vector<std::string> fit_notes(const CalibratedModel& priced) {
  if (priced.others.empty()) return {};
  return {carried_fit_note(priced.others)};
}

std::vector<std::string> run_notes(const Comparison& run, const std::string& file,
                                   const std::vector<Setting>& set,
                                   const std::vector<ScalingCurve>& curves) {
  std::vector<std::string> notes = scenario_notes(run.scenario, file, set);
  add_each_once(notes, idle_strategy_notes(run.scenario, set));
  add_each_once(notes, idle_key_notes(run.scenario));
  add_each_once(notes, fit_notes(run.priced));
  add_each_once(notes,
                far_row_notes(run.scenario, run.priced, run.knowledge, run.scenario.compare));
  add_each_once(notes, run_warnings(run));
  add_each_once(notes, reserved_notes(run));
  add_each_once(notes, long_run_notes(run));
  add_each_once(notes, buffer_notes(run));
  add_each_once(notes, sharing_notes(run));
  if (memory_warnings(run).size() == run.compared.size())
    if (std::string advice = memory_advice(file, set); !advice.empty())
      add_each_once(notes, {std::move(advice)});
  const bool several_nodes = std::ranges::any_of(curves, [](const ScalingCurve& curve) {
    return std::ranges::any_of(curve.points,
                               [](const ScalingPoint& point) { return point.nodes > 1; });
  });
  if (several_nodes) std::erase(notes, no_network_note);
  add_each_once(notes, slow_reference_notes(run));
  add_each_once(notes, scaling_notes(run, curves));
  return notes;
}

std::vector<std::string> scaling_notes(const Comparison& run,
                                       const std::vector<ScalingCurve>& curves) {
  std::vector<std::string> notes;
  const CalibratedCluster& cluster = run.scenario.cluster;
  std::set<int> sizes;  // the ranks of each point
  for (const ScalingCurve& curve : curves)
    for (const ScalingPoint& point : curve.points) sizes.insert(point.ranks());
  sizes.erase(1);
  if (sizes.empty()) return notes;
  const int of_node = cluster.ranks_per_node.largest(), most = *sizes.rbegin();
  const bool holds_more = cluster.intra_node.nvswitch && ranks_by_nvswitch > of_node;
  if (cluster.nodes == 1 && holds_more && most > of_node)
    notes.push_back(
        fmt::format("--scaling: beyond {0} rank{1} the curve has more nodes of {0} rank{1} each, "
                    "as the scenario's is: --ranks-per-node says what a node holds",
                    of_node, of_node == 1 ? "" : "s"));
  const int measured = ranks_of_table(cluster);
  if (measured > 0 && std::ranges::any_of(sizes, [&](int ranks) { return ranks != measured; }))
    notes.push_back(
        fmt::format("--scaling: all-reduces were measured with {} ranks: at other sizes they are "
                    "scaled by the law of a ring, which nobody measured here",
                    measured));
  if (run.priced.fit && run.priced.fit->rows > 0) {
    const int measured_on = measured_ranks(run.scenario);
    if (std::ranges::any_of(sizes, [&](int ranks) { return ranks != measured_on; }))
      notes.push_back(
          fmt::format("--scaling: what was fitted to rows measured on {} rank{} is taken at every "
                      "size: --laws-only leaves it out",
                      measured_on, measured_on == 1 ? "" : "s"));
  }
  for (const RankException& exception : cluster.exceptions) {
    const int needed = exception.rank + 1;
    const auto first = sizes.lower_bound(needed);
    if (first == sizes.begin()) continue;
    notes.push_back(fmt::format("--scaling: {} (cluster.exceptions) is {}", name_of(exception),
                                first == sizes.end()
                                    ? std::string("in no point of the curve")
                                    : fmt::format("in the curve from {} ranks on, and the points "
                                                  "before are without it",
                                                  *first)));
  }
  return notes;
}

std::vector<std::string> unfit_notes(const Scenario& scenario, const Tuning& tuning,
                                     const std::string& file, const std::vector<Setting>& set) {
  std::vector<std::string> notes = tune_warnings(scenario, tuning);
  if (notes.empty()) return notes;
  std::vector<Setting> bucketed_alone = set;
  std::erase_if(bucketed_alone, [](const Setting& setting) { return setting.key == "compare"; });
  bucketed_alone.emplace_back("compare", "[bucketed]");
  if (std::string advice = memory_advice(file, bucketed_alone); !advice.empty())
    notes.push_back(std::move(advice));
  return notes;
}

std::vector<std::string> take_as_tuned(Training& training) {
  std::vector<std::string> notes;
  if (training.strategy != Strategy::bucketed)
    notes.push_back(fmt::format("tune is of `bucketed`, whatever training.strategy says ({})",
                                name_of(training.strategy)));
  if (training.iteration != 0)
    notes.push_back(fmt::format("tune is of a steady step: training.{} has no effect",
                                training.iteration == 1 ? "phase (or iteration)" : "iteration"));
  training.strategy = Strategy::bucketed;
  training.iteration = 0;
  return notes;
}

std::vector<std::string> tune_notes(const Scenario& scenario, const CalibratedModel& priced,
                                    const Tuning& tuning, const std::string& file,
                                    const std::vector<Setting>& set) {
  std::vector<std::string> notes = scenario_notes(scenario, file, set);
  add_each_once(notes, fit_notes(priced));
  add_each_once(
      notes, far_row_notes(scenario, priced, knowledge_of(scenario, priced), {Strategy::bucketed}));
  add_each_once(notes, unfit_notes(scenario, tuning, file, set));
  return notes;
}

std::vector<std::string> shard_notes(const Scenario& scenario, const CalibratedModel& priced,
                                     const ShardTuning& tuning, const std::string& file,
                                     const std::vector<Setting>& set) {
  std::vector<std::string> notes = scenario_notes(scenario, file, set);
  add_each_once(notes, fit_notes(priced));
  add_each_once(notes, far_row_notes(scenario, priced, knowledge_of(scenario, priced),
                                     {scenario.training.strategy}));
  if (std::string unfit = no_sharding_fits(scenario, tuning); !unfit.empty())
    add_each_once(notes, {std::move(unfit)});
  return notes;
}

}  // namespace ddpsim
