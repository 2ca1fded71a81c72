// How to shard. There are few settings, and each has few values that differ, so all combinations
// are simulated:
//
//     blocks a unit     1, 2, 3, 4, 8, 16, ... up to all blocks of one list
//     head              what the root has behind the last block: with it, or a unit of its own
//     reshard           auto (all units but the root), true, false
//     inputs            1 or 2 held of reduce-scatters
//     communicator      that of all-gathers, or one of their own, for reduce-scatters
//     replicas          1; divisors of the number of nodes: whole nodes; the scenario's
//
// No step is shorter than the greatest of three bounds, each of its own job and costs, in which
// nothing slows anything:
//
//     passes            the step without communication
//     a communicator    all that stands in its queue, one after the other: all-gathers and
//                       reduce-scatters, or, where these have another, the longer of the two
//     the root          its all-gather, which is before the first kernel of the passes, all kernels
//                       of the stream of kernels, and its reduce-scatter, which is behind the last
//                       kernel of the backward pass and before the optimizer's
//
// so the least bound of all combinations is one that none of them beats.

#include "sim/tune/shards.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "model/base/index.hpp"
#include "model/parallel/memory/peak_memory.hpp"
#include "model/parallel/policy/fsdp_units.hpp"
#include "sim/engine/price.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/parallel.hpp"

namespace ddpsim {
namespace {

using Units = std::vector<std::vector<std::int32_t>>;

/// Steps closer than that are as good as each other.
constexpr double alike = 0.001;

/// "layers." of "layers.3": blocks of one list have it in common.
std::string list_of(const std::string& block) {
  return block.substr(0, block.rfind('.') + 1);  // npos + 1 is 0
}

/// Ways to put the blocks of a network into units.
class Blocks {
 public:
  explicit Blocks(const Workload& workload) {
    std::vector<std::string> names;
    for (const Parameter& parameter : workload.parameters) names.push_back(parameter.name);
    for (std::vector<std::int32_t>& block : block_units(names)) {
      const std::string list = list_of(block_of(names[at(block.front())]));
      if (lists_.empty() || lists_.back().first != list) lists_.push_back({list, {}});
      lists_.back().second.push_back(std::move(block));
    }
    int last = -1;
    std::set<std::int32_t> taken;
    for (const auto& [list, blocks] : lists_)
      for (const auto& block : blocks)
        for (const std::int32_t each : block) {
          taken.insert(each);
          last = std::max(last, workload.parameters[at(each)].layer);
        }
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto each = static_cast<std::int32_t>(i);
          last >= 0 && !taken.contains(each) && !workload.parameters[i].unused &&
          workload.parameters[i].layer > last && names[i].find('.') != std::string::npos)
        head_.push_back(each);
  }

  bool has_head() const { return !head_.empty(); }

  /// How many blocks next to each other might be a unit.
  std::vector<int> sizes() const {
    int longest = 0;
    for (const auto& [list, blocks] : lists_)
      longest = std::max(longest, static_cast<int>(blocks.size()));
    std::vector<int> sizes;
    for (int size = 1; size < longest; size = size < 4 ? size + 1 : 2 * size) sizes.push_back(size);
    if (longest > 0) sizes.push_back(longest);
    return sizes;
  }

  /// As the settings of a training have them: none where they are what it does by itself.
  Units units(int size, bool own_head) const {
    if (size == 1 && !own_head) return {};
    Units units;
    for (const auto& [list, blocks] : lists_)
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % static_cast<std::size_t>(size) == 0) units.emplace_back();
        units.back().insert(units.back().end(), blocks[i].begin(), blocks[i].end());
      }
    for (std::vector<std::int32_t>& unit : units) std::ranges::sort(unit);
    if (own_head) units.push_back(head_);
    return units;
  }

 private:
  std::vector<std::pair<std::string, Units>> lists_;  ///< the blocks of each list
  std::vector<std::int32_t> head_;
};

/// Numbers of replicas, each of whole nodes, and the scenario's.
std::vector<int> replicas_of(const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  std::set<int> replicas{1, scenario.training.replicate};
  if (cluster.ranks_per_node.equal() && cluster.ranks() > cluster.nodes)
    for (const int each : {2, cluster.nodes / 2, cluster.nodes})
      if (each > 1 && cluster.nodes % each == 0) replicas.insert(each);
  return {replicas.begin(), replicas.end()};
}

std::vector<Sharding> combinations(const Scenario& scenario) {
  const Blocks blocks(scenario.workload);
  Training base = scenario.training;
  base.iteration = 0;
  struct Wrapping {
    int blocks;
    bool own_head;
    Units units;
  };
  std::vector<Wrapping> wrappings;
  for (const int size : blocks.sizes())
    for (const bool own_head : {false, true})
      if (!own_head || blocks.has_head())
        wrappings.push_back({size, own_head, blocks.units(size, own_head)});
  if (wrappings.empty()) wrappings.push_back({1, false, {}});  // all parameters are the root's
  const bool is_other = std::ranges::none_of(
      wrappings, [&](const Wrapping& each) { return each.units == base.units; });
  if (is_other) wrappings.push_back({0, false, base.units});
  std::set<int> held{1, 2, base.reduce_scatter_max_input_buffers};
  std::vector<bool> groups{false};
  if (!scenario.cluster.device.synchronous || base.separate_reduce_scatter_group)
    groups.push_back(true);
  std::vector<std::optional<Reshard>> reshards{std::nullopt, Reshard(true), Reshard(false)};
  if (std::ranges::find(reshards, base.reshard_after_forward) == reshards.end())
    reshards.push_back(base.reshard_after_forward);
  std::vector<Sharding> all;
  for (const Wrapping& wrapping : wrappings)
    for (const int replicate : replicas_of(scenario))
      for (const std::optional<Reshard>& reshard : reshards)
        for (const int inputs : held)
          for (const bool separate : groups) {
            Sharding& made = all.emplace_back();
            made.blocks = wrapping.blocks;
            made.own_head = wrapping.own_head;
            made.training = base;
            made.training.units = wrapping.units;
            // What single units are told is of the scenario's own units.
            if (wrapping.units != base.units) {
              made.training.unit_modules.clear();
              made.training.unit_settings.clear();
            }
            made.training.replicate = replicate;
            made.training.reshard_after_forward = reshard;
            made.training.reduce_scatter_max_input_buffers = inputs;
            made.training.separate_reduce_scatter_group = separate;
          }
  return all;
}

/// What of a step's job bounds it, nothing slowed by anything.
struct Sums {
  Duration gathers{}, scatters{}, kernels{};
  Duration root_gather{}, root_scatter{};
};

Sums sums_of(const program::Job& job, const Costs& costs, std::size_t of_rank) {
  Sums sums;
  const bool has_root = !job.groups.empty() && job.groups.front().name == "the root";
  bool is_first = true;
  Duration last_scatter{};
  for (const program::Task& task : job.programs[of_rank].tasks) {
    const Duration work = costs.of(task).work;
    const Operation operation = job.works[task.work].operation;
    if (operation == Operation::all_gather) {
      sums.gathers += work;
      if (std::exchange(is_first, false) && has_root) sums.root_gather = work;
    } else if (operation == Operation::reduce_scatter) {
      sums.scatters += work;
      last_scatter = work;
    } else if (job.streams[task.stream].name == "compute") {
      sums.kernels += work;
    }
  }
  if (has_root) sums.root_scatter = last_scatter;
  return sums;
}

class ShardTuner {
 public:
  ShardTuner(const Scenario& scenario, const StepModel& model, const ShardOptions& options)
      : scenario_(scenario), model_(model), options_(options) {}

  ShardTuning run() {
    ShardTuning tuning;
    tuning.tried = combinations(scenario_);
    find_passes(tuning);
    std::atomic<std::size_t> done{0};
    parallel_for(tuning.tried.size(), options_.threads, [&](int thread, std::size_t i) {
      simulate(tuning.tried[i]);
      ++done;
      if (thread == 0 && options_.progress)
        options_.progress("shardings", static_cast<double>(done.load()) /
                                           static_cast<double>(tuning.tried.size()));
    });
    sort(tuning);
    choose(tuning);
    return tuning;
  }

 private:
  void find_passes(ShardTuning& tuning) {
    tuning.without = Duration::max();
    for (const Sharding& each : tuning.tried) {
      const auto [found, is_new] = passes_.try_emplace(each.training.replicate);
      if (!is_new) continue;
      found->second = predict(model_, each.training.compared_with()).metrics;
      tuning.without = std::min(tuning.without, found->second.step);
    }
  }

  void simulate(Sharding& sharding) const {
    const auto planned =
        std::make_shared<const PlannedStep>(plan_step(model_.works, sharding.training));
    const program::Job& job = planned->job;
    const StepMetrics metrics = predict(model_.costs, sharding.training, planned).metrics;
    const StepMetrics& passes = passes_.at(sharding.training.replicate);
    sharding.step = metrics.step;
    sharding.exposed = exposed(metrics, passes);
    const JobCosts costs = price(model_.costs, job);
    const Sums sums = sums_of(job, costs.kinds[costs.of_rank.front()], job.program_of.front());
    const Duration queue = sharding.training.separate_reduce_scatter_group
                               ? std::max(sums.gathers, sums.scatters)
                               : sums.gathers + sums.scatters;
    sharding.bound =
        std::max({passes.step, queue, sums.root_gather + sums.kernels + sums.root_scatter});
    sharding.units = static_cast<int>(job.groups.size());
    for (const program::ParameterGroup& group : job.groups)
      sharding.largest = std::max(sharding.largest, group.size);
    const StepMemory memory =
        step_memory(scenario_.workload, scenario_.optimizer, sharding.training, job);
    sharding.peak = memory.peak;
    const Bytes device = scenario_.cluster.device.memory;
    sharding.fits = device <= Bytes{} || fits(memory.peak, device);
  }

  static void sort(ShardTuning& tuning) {
    std::ranges::stable_sort(tuning.tried, {}, [](const Sharding& each) {
      return std::tuple(!each.fits, each.step, each.changes(), each.peak);
    });
    tuning.any_fits = tuning.tried.front().fits;
    tuning.lower_bound = Duration::max();
    for (const Sharding& each : tuning.tried)
      tuning.lower_bound = std::min(tuning.lower_bound, each.bound);
  }

  static bool is_like(const Sharding& sharding, const Training& other) {
    const Training& mine = sharding.training;
    return mine.units == other.units && mine.replicate == other.replicate &&
           mine.reshard_after_forward == other.reshard_after_forward &&
           mine.reduce_scatter_max_input_buffers == other.reduce_scatter_max_input_buffers &&
           mine.separate_reduce_scatter_group == other.separate_reduce_scatter_group;
  }

  static std::size_t place_of(const ShardTuning& tuning, const Training& training) {
    const auto found = std::ranges::find_if(
        tuning.tried, [&](const Sharding& each) { return is_like(each, training); });
    return static_cast<std::size_t>(found - tuning.tried.begin());
  }

  /// Is it one of those that are compared: it fits, or nothing does?
  static bool counts(const ShardTuning& tuning, const Sharding& sharding) {
    return sharding.fits || !tuning.any_fits;
  }

  void choose(ShardTuning& tuning) const {
    Training standard = scenario_.training;
    static_cast<FsdpSettings&>(standard) = {};
    tuning.standard = place_of(tuning, standard);
    tuning.given = place_of(tuning, scenario_.training);
    const std::vector<Sharding>& tried = tuning.tried;
    if (options_.least_memory) {
      const Duration longest = scaled(tried.front().step, 1 + options_.within);
      for (std::size_t i = 0; i < tried.size(); ++i)
        if (counts(tuning, tried[i]) && tried[i].step <= longest &&
            tried[i].peak < tried[tuning.best].peak)
          tuning.best = i;
    }
    tuning.advised = tuning.best;
    const Duration as_good = scaled(tuning.best_one().step, 1 + alike);
    for (std::size_t i = 0; i < tried.size(); ++i) {
      const Sharding& each = tried[i];
      const bool is_as_good = counts(tuning, each) && each.step <= as_good &&
                              (!options_.least_memory || each.peak <= tuning.best_one().peak);
      if (is_as_good && each.changes() < tuning.advised_one().changes()) tuning.advised = i;
    }
    const Sharding& given = tuning.given_one();
    const bool gains = options_.least_memory ? tuning.advised_one().peak < given.peak
                                             : in_seconds(tuning.advised_one().step) <
                                                   in_seconds(given.step) * (1 - options_.noise);
    tuning.pays = tuning.advised != tuning.given && (gains || !counts(tuning, given));
    if (!tuning.pays) tuning.advised = tuning.given;
  }

  const Scenario& scenario_;
  const StepModel& model_;
  const ShardOptions& options_;
  std::map<int, StepMetrics> passes_;  ///< [replicas] the step without communication
};

}  // namespace

int Sharding::changes() const {
  const FsdpSettings standard;
  return (blocks != 1 ? 1 : 0) + (own_head ? 1 : 0) +
         (training.reshard_after_forward != standard.reshard_after_forward ? 1 : 0) +
         (training.replicate != standard.replicate ? 1 : 0) +
         (training.reduce_scatter_max_input_buffers != standard.reduce_scatter_max_input_buffers
              ? 1
              : 0) +
         (training.separate_reduce_scatter_group ? 1 : 0);
}

double ShardTuning::gain() const {
  return 1 - in_seconds(advised_one().step) / in_seconds(given_one().step);
}

ShardTuning tune_shards(const Scenario& scenario, const StepModel& model,
                        const ShardOptions& options) {
  if (scenario.cluster.ranks() == 1)
    throw std::invalid_argument("one rank shards with nobody: there is nothing to tune");
  plan_step(model.works, scenario.training);  // what is refused of the scenario's own
  return ShardTuner(scenario, model, options).run();
}

}  // namespace ddpsim
