// Ranks that differ as a scenario says (cluster.exceptions).

#include <tuple>

#include <catch2/catch.hpp>

#include "model/parallel/policy/bucket_plan.hpp"
#include "model/timeline/why.hpp"
#include "sim/predict/loss.hpp"
#include "sim/predict/predict.hpp"
#include "sim/predict/run_ahead.hpp"
#include "sim/predict/simulated_ranks.hpp"
#include "sim/predict/what_if.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "tests/sim/predict/random_exceptions.hpp"
#include "tests/sim/predict/random_trainings.hpp"
#include "tests/sim/predict/same_steps.hpp"

namespace ddpsim::timed {
namespace {

using namespace std::chrono_literals;
using fixtures::Dice;

RankException slower(int rank, double compute) {
  RankException exception;
  exception.rank = rank;
  exception.compute = compute;
  return exception;
}

RankException pausing(int rank, Duration pause, double at = 0) {
  RankException exception;
  exception.rank = rank;
  exception.pause = pause;
  exception.at = at;
  return exception;
}

const std::vector<RankException> nobody_differs;

/// Three layers of 2 ms forward and 4 ms backward, 1 MB of gradient each, on a ring of 1 GB/s
/// without latency: among two ranks 1 ms an all-reduce. Copies are free.
StepModel layers_with(const std::vector<RankException>& exceptions, int ranks = 2,
                      bool synchronous = false) {
  Cluster cluster = ring(ranks, 0us, gigabytes_per_second(1));
  cluster.device.synchronous = synchronous;
  cluster.exceptions = exceptions;
  StepModel model = model_of(chain(3, 2ms, 4ms, {1'000'000}), cluster);
  free_copies(model);
  return model;
}

Training two_buckets() {
  Training training;
  training.buckets = {{2, 1}, {0}};
  return training;
}

Duration step_by(const StepModel& model, Strategy strategy) {
  return predict(model, training_of(strategy)).metrics.step;
}

/// As `predict` says, and as the tuner's own simulation does.
Duration bucketed_step(const StepModel& model) {
  const Duration step = predict(model, two_buckets()).metrics.step;
  CHECK(BucketSteps(model, {}).of(two_buckets().buckets) == step);
  return step;
}

/// "0; 5 x 1.3; 0 x 1.5, slowest": whose work each has, and how slowly.
std::string told(const std::vector<SimulatedRank>& ranks) {
  std::string text;
  for (const SimulatedRank& rank : ranks) {
    text += (text.empty() ? "" : "; ") + std::to_string(rank.rank);
    if (rank.compute != 1) text += " x " + std::to_string(rank.compute).substr(0, 3);
    if (rank.slowest) text += ", slowest";
  }
  return text;
}

}  // namespace

TEST_CASE("all wait for the rank that computes twice as long", "[sim][exceptions]") {
  // It computes for 36 ms, in which the others are done in 18. Then three all-reduces of 1 ms, or
  // one of 3 ms.
  const StepModel model = layers_with({slower(1, 2)});
  CHECK(step_by(model, Strategy::none) == 36ms);
  CHECK(step_by(model, Strategy::naive) == 39ms);
  CHECK(step_by(model, Strategy::flat) == 39ms);
  // Its gradients come at 20, 28 and 36: only the last one's all-reduce is seen.
  CHECK(step_by(model, Strategy::overlap) == 37ms);
  // The first bucket goes from 28 to 30, the second from 36 on.
  CHECK(bucketed_step(model) == 37ms);
}

TEST_CASE("the figures shown are a typical rank's, whichever rank is slow", "[sim][exceptions]") {
  const Step last = predict(layers_with({slower(1, 2)}), two_buckets()),
             first = predict(layers_with({slower(0, 2)}), two_buckets());
  for (const Step* step : {&last, &first}) {
    CHECK(step->metrics.step == 37ms);
    CHECK(step->metrics.forward == 6ms);
    CHECK(step->metrics.buckets[0].ready == Instant{14ms});
    CHECK(step->metrics.buckets[0].start == Instant{28ms});
  }
}

TEST_CASE("a faster rank changes nothing, as all wait for the others", "[sim][exceptions]") {
  const StepModel model = layers_with({slower(0, 0.5)});
  CHECK(step_by(model, Strategy::naive) == 21ms);
  CHECK(bucketed_step(model) == bucketed_step(layers_with(nobody_differs)));
}

TEST_CASE("a pause is hidden as long as the device has work", "[sim][exceptions]") {
  // Launches take no time: the host has enqueued everything at once. At half of the 18 ms it is
  // about to enqueue the first backward kernel; forward takes the device 6 ms.
  CHECK(step_by(layers_with({pausing(1, 5ms, 0.5)}), Strategy::naive) == 21ms);
  CHECK(bucketed_step(layers_with({pausing(1, 5ms, 0.5)})) ==
        bucketed_step(layers_with(nobody_differs)));
  // After 10 ms it goes on 4 ms late.
  CHECK(step_by(layers_with({pausing(1, 10ms, 0.5)}), Strategy::naive) == 25ms);
  CHECK(bucketed_step(layers_with({pausing(1, 10ms, 0.5)})) ==
        bucketed_step(layers_with(nobody_differs)) + 4ms);
  // Before the first kernel there is nothing to do meanwhile.
  CHECK(step_by(layers_with({pausing(1, 5ms)}), Strategy::naive) == 26ms);
  CHECK(bucketed_step(layers_with({pausing(1, 5ms)})) ==
        bucketed_step(layers_with(nobody_differs)) + 5ms);
  // Before the last backward kernel, which begins at 14.
  CHECK(step_by(layers_with({pausing(1, 13ms, 1)}), Strategy::naive) == 21ms);
  CHECK(step_by(layers_with({pausing(1, 15ms, 1)}), Strategy::naive) == 22ms);
}

TEST_CASE("a host that computes itself hides no pause", "[sim][exceptions]") {
  CHECK(step_by(layers_with({pausing(1, 5ms, 0.5)}, 2, true), Strategy::naive) == 26ms);
  CHECK(bucketed_step(layers_with({pausing(1, 5ms, 0.5)}, 2, true)) ==
        bucketed_step(layers_with(nobody_differs, 2, true)) + 5ms);
}

TEST_CASE("a rank may be slow and pause", "[sim][exceptions]") {
  // The pause comes at half of its 36 ms: forward takes its device 12.
  RankException both = pausing(1, 15ms, 0.5);
  both.compute = 2;
  CHECK(step_by(layers_with({both}), Strategy::naive) == 15ms + 24ms + 3ms);
}

TEST_CASE("a pause comes before the same kernel under every strategy", "[sim][exceptions]") {
  // Of three layers of 2 and 4 ms and copies that take time, 40 % are reached in backward.
  for (int percent = 0; percent <= 100; percent += 4) {
    CAPTURE(percent);
    StepModel model = layers_with({pausing(1, 20ms, 0.01 * percent)});
    const StepModel copying =
        model_of(chain(3, 2ms, 4ms, {1'000'000}), ring(2, 0us, gigabytes_per_second(1)));
    model.works = copying.works;
    const auto paused = [&](Strategy strategy) {
      const PlannedStep planned = plan_step(model.works, training_of(strategy));
      const JobCosts costs = price(model.costs, planned.job);
      const program::Program& program = planned.job.programs.front();
      const JobCosts::Pause pause = costs.pauses.at(costs.of_rank[1]).front();
      const program::Origin& origin = planned.job.deed_of(program.tasks[pause.task]).origin;
      return std::tuple(origin.pass, origin.layer, origin.kernel);
    };
    for (const Strategy strategy : all_strategies)
      // A ZeRO has other kernels in the optimizer's pass.
      if (percent < 100 || training_of(strategy).zero() == nullptr)
        CHECK(paused(strategy) == paused(Strategy::none));
  }
}

TEST_CASE("too many ranks that differ are refused before they are simulated", "[sim][exceptions]") {
  std::vector<RankException> many;
  for (int rank = 1; rank < 70'000; ++rank) many.push_back(slower(rank, 1 + 1e-6 * rank));
  CHECK_THROWS_WITH(predict(layers_with(many, 70'000), two_buckets()),
                    Catch::Contains("write fewer cluster.exceptions"));
}

TEST_CASE("a run ahead pauses in every step", "[sim][exceptions]") {
  const StepModel model = layers_with({pausing(1, 100ms)});
  const RunAhead run = run_ahead(model, consecutive_steps(model, two_buckets(), 5));
  REQUIRE(run.periods.size() == 5);
  CHECK(run.total() >= 500ms);
  CHECK(run.total() < 600ms + 5 * 19ms);
}

TEST_CASE("the network is as slow as the NICs of the slowest node", "[sim][exceptions]") {
  const auto on_nodes = [](double bandwidth, std::optional<double> nic) {
    Cluster cluster = ring(1, 0us, gigabytes_per_second(100));
    cluster.nodes = 2;
    cluster.inter_node.latency = 10us;
    cluster.inter_node.bandwidth = gigabytes_per_second(bandwidth);
    if (nic) {
      RankException& slow = cluster.exceptions.emplace_back();
      slow.node = slow.rank = 1;
      slow.nic = gigabytes_per_second(*nic);
    }
    StepModel model = model_of(chain(3, 2ms, 4ms, {1'000'000}), cluster);
    free_copies(model);
    return model;
  };
  const Duration slow = step_by(on_nodes(1, {}), Strategy::naive),
                 fast = step_by(on_nodes(2, {}), Strategy::naive);
  CHECK(slow - fast == 1500us);  // three all-reduces of 1 MB
  CHECK(step_by(on_nodes(2, 1), Strategy::naive) == slow);
  CHECK(step_by(on_nodes(2, 3), Strategy::naive) == fast);
  // Every rank computes alike, so even ranks would change nothing.
  const StepModel model = on_nodes(2, 1);
  CHECK(simulated_ranks(model.costs, program::Job{.programs = {{}}}).size() == 1);
  const std::vector<WhatIf> changes = what_if(model, training_of(Strategy::naive));
  REQUIRE(changes.size() == 5);
  CHECK(changes.back().change == Change::no_exceptions);
  CHECK(changes.back().step == fast);
}

TEST_CASE("NCCL over slower NICs is NCCL over that network", "[sim][exceptions]") {
  Cluster cluster = eight_gpus();
  cluster.nodes = 4;
  cluster.inter_node.kind = LinkKind::infiniband;
  cluster.inter_node.latency = 14us;
  cluster.inter_node.bandwidth = gigabytes_per_second(50);
  cluster.inter_node.nccl_bandwidth = gigabytes_per_second(48);
  Cluster slow = cluster, exceptional = cluster;
  slow.inter_node.bandwidth = gigabytes_per_second(12.5);
  slow.inter_node.nccl_bandwidth = gigabytes_per_second(12);
  RankException& exception = exceptional.exceptions.emplace_back();
  exception.node = 2;
  exception.rank = 16;
  exception.ranks = 8;
  exception.nic = gigabytes_per_second(12.5);
  const Workload workload = chain(12, 100us, 200us, {30'000'000});
  const StepModel one = model_of(workload, slow), other = model_of(workload, exceptional);
  for (const Strategy strategy : all_strategies)
    CHECK(step_by(one, strategy) == step_by(other, strategy));
  CHECK(step_by(one, Strategy::flat) > step_by(model_of(workload, cluster), Strategy::flat));
  // What the step would be without is that of the cluster as it is.
  const CostModel without = with(other.costs, Change::no_exceptions);
  CHECK(without.all_reduce(MiB).time() == model_of(workload, cluster).costs.all_reduce(MiB).time());
}

TEST_CASE("a measured table knows of no NIC", "[sim][exceptions]") {
  Cluster cluster = ring(1, 0us, gigabytes_per_second(100));
  cluster.nodes = 2;
  cluster.inter_node.bandwidth = gigabytes_per_second(2);
  cluster.inter_node.all_reduce = {{Bytes{1}, 1ms}, {GiB, 1ms}};
  const Workload workload = chain(3, 2ms, 4ms, {1'000'000});
  const Duration step = step_by(model_of(workload, cluster), Strategy::naive);
  cluster.exceptions.emplace_back().nic = gigabytes_per_second(0.1);
  CHECK(step_by(model_of(workload, cluster), Strategy::naive) == step);
}

TEST_CASE("which ranks are told apart", "[sim][exceptions]") {
  RankException node = slower(8, 1.5);
  node.node = 1;
  node.ranks = 8;
  CHECK(told(simulated_ranks({}, 1, 16, 1)) == "0");
  CHECK(told(simulated_ranks({}, 1.2, 16, 1)) == "0; 0 x 1.2, slowest");
  CHECK(told(simulated_ranks({slower(5, 1.3), node}, 1.2, 16, 1)) ==
        "0; 5 x 1.3; 8 x 1.5; 0 x 1.2, slowest");
  CHECK(told(simulated_ranks({slower(5, 1)}, 1, 16, 1)) == "0");  // it is as the others
  // Where a single rank is no exception, or none.
  CHECK(told(simulated_ranks({slower(1, 1.3)}, 1.2, 2, 1)) == "0 x 1.2, slowest; 1 x 1.3");
  CHECK(told(simulated_ranks({slower(0, 1.3), slower(1, 2)}, 1.2, 2, 1)) == "0 x 1.3; 1 x 2.0");
  // Of three ranks with different work, the last like all that follow.
  CHECK(told(simulated_ranks({}, 1.2, 16, 3)) == "0; 1; 2 x 1.2, slowest");
  CHECK(told(simulated_ranks({slower(1, 1.3)}, 1.2, 16, 3)) == "0; 1 x 1.3; 2 x 1.2, slowest");
  CHECK(told(simulated_ranks({slower(5, 1.3)}, 1.2, 16, 3)) == "0; 1; 2 x 1.2, slowest; 5 x 1.3");
  CHECK(told(simulated_ranks({slower(2, 1.3)}, 1.2, 3, 3)) == "0; 1 x 1.2, slowest; 2 x 1.3");
  node.rank = 0;
  CHECK(told(simulated_ranks({node}, 1, 16, 3)) == "0 x 1.5; 1 x 1.5; 2; 2 x 1.5");
}

TEST_CASE("R45: an exception with ZeRO's hooks is slow in its own work", "[sim][exceptions]") {
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  Training training;
  training.buckets = {{2}, {1}, {0}};
  training.comm_hook.kind = kind;
  StepModel slowest = layers_with(nobody_differs);
  slowest.costs.slowest_rank = 1.5;
  const Step one = predict(slowest, training),
             other = predict(layers_with({slower(1, 1.5)}), training);
  CHECK(fixtures::same(one, other));
  // Of 64 ranks the three owners differ from the others; the exception is one of these.
  const Step many = predict(layers_with({slower(40, 1.5)}, 64), training);
  CHECK(many.ranks.size() == 5);
  CHECK(many.metrics.step > predict(layers_with(nobody_differs, 64), training).metrics.step);
}

TEST_CASE("a slower rank holds back its own group of post_local_sgd alone", "[sim][exceptions]") {
  Training local = two_buckets();
  local.comm_hook.kind = CommHookKind::post_local_sgd;
  local.comm_hook.post_local_sgd.subgroup = 2;
  local.iteration = 1002;  // in which groups of two reduce, and models are not averaged
  const Step usual = predict(layers_with(nobody_differs, 4), local);
  const auto starts = [&](const RankException& exception, const Training& training) {
    return predict(layers_with({exception}, 4), training).metrics.buckets[0].start;
  };
  // Rank 0's partner, and a rank of the other group.
  CHECK(starts(slower(1, 2), local) > usual.metrics.buckets[0].start);
  CHECK(starts(slower(3, 2), local) == usual.metrics.buckets[0].start);
  CHECK(starts(slower(3, 2), two_buckets()) == starts(slower(1, 2), two_buckets()));
  // The step ends with the slow rank, which computes 36 ms.
  CHECK(predict(layers_with({slower(3, 2)}, 4), local).metrics.step > 36ms);
}

TEST_CASE("why names the rank for which a bucket waits", "[sim][exceptions]") {
  const auto last_ranks = [](const StepModel& model) {
    std::vector<int> ranks;
    const Step step = predict(model, training_of(Strategy::flat));
    for (const ExposedBucket& bucket :
         why_exposed(step.job(), step.times, step.metrics, step.ranks.front()))
      ranks.push_back(static_cast<int>(step.index_of(bucket.last_rank)));
    return ranks;
  };
  // 0 is the typical rank, then come the exceptions, then the slowest of the others.
  CHECK(last_ranks(layers_with(nobody_differs)) == std::vector<int>{0});
  CHECK(last_ranks(layers_with({slower(2, 1.2), slower(1, 1.5)}, 4)) == std::vector<int>{2});
  CHECK(last_ranks(layers_with({slower(1, 0.5)}, 4)) == std::vector<int>{0});
  StepModel model = layers_with({slower(1, 1.5)}, 4);
  model.costs.slowest_rank = 1.6;
  CHECK(last_ranks(model) == std::vector<int>{2});
}

TEST_CASE("what exceptions cost is lost to the slowest rank", "[sim][exceptions]") {
  const StepModel model = layers_with({slower(1, 2)});
  const Step step = predict(model, training_of(Strategy::flat));
  const StepLoss loss = step_loss(model, step);
  CHECK(loss.one_rank == 18ms);
  CHECK(loss.by(Loss::slowest_rank) == 18ms);
  CHECK(loss.by(Loss::transfer) == 3ms);
  CHECK(step_length(with(model.costs, Change::even_ranks),
                    plan_step(model.works, training_of(Strategy::flat))) == 21ms);
}

TEST_CASE("a step of an exception beyond six hours is refused", "[sim][exceptions]") {
  const StepModel model = model_of(chain(1, 30min, 30min, Bytes{1000}), [] {
    Cluster cluster = ring(2, 1us, gigabytes_per_second(1));
    cluster.exceptions = {slower(1, 7)};
    return cluster;
  }());
  CHECK_THROWS_WITH(predict(model, {}), Catch::Contains("a step of 7 hours is beyond"));
  CHECK_THROWS_WITH(BucketSteps(model, {}), Catch::Contains("a step of 7 hours is beyond"));
}

TEST_CASE("exceptions of random steps: what must hold", "[sim][exceptions]") {
  constexpr std::uint64_t seed = 97;
  Dice dice(seed);
  int longer = 0, compared = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(seed, round);
    const Workload workload = fixtures::random_workload(dice);
    Cluster cluster = fixtures::random_cluster(dice, false);
    cluster.ranks_per_node = dice.between(2, 8);
    Training training = fixtures::random_training(dice, workload);
    StepModel model = model_of(workload, cluster);
    if (dice.one_in(2)) model.costs.slowest_rank = 1 + 0.01 * dice.between(1, 40);
    for (const Bucket& bucket : plan_buckets(model.works, training))
      training.buckets.push_back({bucket.parameters.begin(), bucket.parameters.end()});
    const Step usual = predict(model, training);
    const auto step_with = [&](const RankException& exception) {
      StepModel other = model;
      other.costs.exceptions = {exception};
      return predict(other, training);
    };
    // A factor of 1 changes nothing.
    Cluster alike = cluster;
    alike.exceptions = {slower(0, 1)};
    StepModel same_ranks = model_of(workload, alike);
    same_ranks.costs.slowest_rank = model.costs.slowest_rank;
    REQUIRE(fixtures::same(predict(same_ranks, training), usual));
    // Slower is never shorter, and it does not matter which rank it is.
    const double factor = 1 + 0.01 * dice.between(0, 100);
    const int last = cluster.ranks() - 1;
    const Duration slow = step_with(slower(0, factor)).metrics.step;
    REQUIRE(slow >= usual.metrics.step);
    REQUIRE(step_with(slower(last, factor)).metrics.step == slow);
    REQUIRE(step_with(slower(0, factor + 0.5)).metrics.step >= slow);
    // Neither is one that pauses, or pauses for longer.
    const double at = 0.01 * dice.between(0, 100);
    const Duration pause = dice.time(1000);
    const Duration paused = step_with(pausing(0, pause, at)).metrics.step;
    REQUIRE(paused >= usual.metrics.step);
    REQUIRE(step_with(pausing(last, pause, at)).metrics.step == paused);
    REQUIRE(step_with(pausing(0, 2 * pause, at)).metrics.step >= paused);
    REQUIRE(paused <= usual.metrics.step + pause);
    longer += slow > usual.metrics.step || paused > usual.metrics.step;
    ++compared;
  }
  CHECK(compared == 400);
  CHECK(longer > 300);
}

}  // namespace ddpsim::timed
