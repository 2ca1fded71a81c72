// Every way to set the strategy (model/ways) is simulated; then variations of the best of them.
//
// No step is shorter than the greatest of three bounds, each of its own job and costs, in which
// nothing slows anything:
//
//     passes            the step without communication
//     a communicator    all that stands in its queue, one after the other
//     the ends          the all-gather of the root's unit, which is before the first kernel of the
//                       passes; all kernels of the stream of kernels; the reduce-scatter of that
//                       unit, which is behind the last kernel of the backward pass and before the
//                       optimizer's; and the collectives that send what the last kernel updated
//
// so the least bound of all is one that none of them beats.

#include "sim/tune/shards.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "model/base/index.hpp"
#include "model/parallel/memory/peak_memory.hpp"
#include "sim/engine/price.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/parallel.hpp"

namespace ddpsim {
namespace {

/// Steps closer than that are as good as each other.
constexpr double alike = 0.001;
/// So many of the best shardings are varied further.
constexpr std::size_t most_varied = 8;

/// What of a step's job bounds it, nothing slowed by anything.
struct Sums {
  std::vector<Duration> queues{};  ///< [communicator]
  Duration kernels{};
  Duration root_gather{}, root_scatter{};
  Duration tail{};  ///< collectives of parameters behind the last kernel
};

Sums sums_of(const program::Job& job, const Costs& costs, std::size_t of_rank) {
  Sums sums{.queues = std::vector<Duration>(job.communicators.size())};
  const bool has_root = !job.groups.empty() && job.groups.front().name == "the root";
  bool is_first = true;
  Duration last_scatter{};
  for (const program::Task& task : job.programs[of_rank].tasks) {
    const Duration work = costs.of(task).work;
    const Operation operation = job.works[task.work].operation;
    const program::Purpose purpose = job.deed_of(task).origin.purpose;
    if (const std::int16_t queue = program::communicator_of(job.deed_of(task).action);
        queue != nobody) {
      if (purpose == program::Purpose::network) continue;
      sums.queues[at(queue)] += work;
      if (purpose == program::Purpose::parameters) sums.tail += work;
      if (operation == Operation::reduce_scatter) last_scatter = work;
      if (operation == Operation::all_gather && std::exchange(is_first, false) && has_root)
        sums.root_gather = work;
    } else if (job.streams[task.stream].name == "compute") {
      sums.kernels += work;
      if (job.works[task.work].computes()) sums.tail = {};
    }
  }
  if (has_root) sums.root_scatter = last_scatter;
  return sums;
}

/// No step of the job is shorter.
Duration bound_of(const program::Job& job, const Sums& sums) {
  Duration queue{};
  bool all_one_at_a_time = true;
  for (std::size_t c = 0; c < sums.queues.size(); ++c) {
    if (job.communicators[c].at_once == 1)
      queue = std::max(queue, sums.queues[c]);
    else
      all_one_at_a_time = false;
  }
  Duration ends = sums.root_gather + sums.kernels + sums.root_scatter;
  if (all_one_at_a_time) ends += sums.tail;
  return std::max(queue, ends);
}

Sharding by(WayToShard way) {
  Sharding sharding;
  static_cast<WayToShard&>(sharding) = std::move(way);
  return sharding;
}

class ShardTuner {
 public:
  ShardTuner(const Scenario& scenario, const StepModel& model, const ShardOptions& options)
      : scenario_(scenario), model_(model), options_(options) {}

  ShardTuning run() {
    ShardTuning tuning;
    for (WayToShard& each : ways_to_shard(scenario_)) tuning.tried.push_back(by(std::move(each)));
    find_passes(tuning);
    simulate_all(tuning.tried);
    sort(tuning);
    std::vector<Sharding> more = varied(tuning);
    simulate_all(more);
    std::ranges::move(more, std::back_inserter(tuning.tried));
    sort(tuning);
    choose(tuning);
    return tuning;
  }

 private:
  void simulate_all(std::vector<Sharding>& shardings) const {
    std::atomic<std::size_t> done{0};
    parallel_for(shardings.size(), options_.threads, [&](int thread, std::size_t i) {
      simulate(shardings[i]);
      ++done;
      if (thread == 0 && options_.progress)
        options_.progress("shardings",
                          static_cast<double>(done.load()) / static_cast<double>(shardings.size()));
    });
  }

  /// The best of what was tried, and the scenario's, with the settings that are left.
  std::vector<Sharding> varied(const ShardTuning& tuning) const {
    std::vector<Sharding> more;
    const std::size_t given = place_of(tuning, scenario_.training);
    for (std::size_t i = 0; i < tuning.tried.size(); ++i) {
      if (i >= most_varied && i != given) continue;
      for (WayToShard& each : variations(scenario_, tuning.tried[i])) {
        const auto is_it = [&](const WayToShard& other) { return other.is_like(each.training); };
        if (std::ranges::none_of(tuning.tried, is_it) && std::ranges::none_of(more, is_it))
          more.push_back(by(std::move(each)));
      }
    }
    return more;
  }

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
    sharding.bound = std::max(passes.step, bound_of(job, sums));
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

  static std::size_t place_of(const ShardTuning& tuning, const Training& training) {
    const auto found = std::ranges::find_if(
        tuning.tried, [&](const Sharding& each) { return each.is_like(training); });
    return static_cast<std::size_t>(found - tuning.tried.begin());
  }

  /// Is it one of those that are compared: it fits, or nothing does?
  static bool counts(const ShardTuning& tuning, const Sharding& sharding) {
    return sharding.fits || !tuning.any_fits;
  }

  void choose(ShardTuning& tuning) const {
    tuning.standard = place_of(tuning, usual_settings(scenario_.training));
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

double ShardTuning::gain() const {
  return 1 - in_seconds(advised_one().step) / in_seconds(given_one().step);
}

ShardTuning tune_shards(const Scenario& scenario, const StepModel& model,
                        const ShardOptions& options) {
  if (scenario.cluster.ranks() == 1)
    throw std::invalid_argument("one rank shards with nobody: there is nothing to tune");
  if (const auto why = why_no_ways(scenario.training)) throw std::invalid_argument(*why);
  plan_step(model.works, scenario.training);  // what is refused of the scenario's own
  return ShardTuner(scenario, model, options).run();
}

}  // namespace ddpsim
