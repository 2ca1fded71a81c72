#include "sim/tune/bucket_steps.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/sim/predict/random_exceptions.hpp"
#include "tests/sim/tune/random_partitions.hpp"

namespace ddpsim {
namespace {

using fixtures::buckets_of;
using fixtures::Dice;

/// Ends of contiguous buckets of `count` gradients, each border there with the same chance.
std::vector<int> random_ends(Dice& dice, int count, int one_in) {
  std::vector<int> ends;
  for (int end = 1; end < count; ++end)
    if (dice.one_in(one_in)) ends.push_back(end);
  ends.push_back(count);
  return ends;
}

Duration simulated(const StepModel& model, Training training,
                   const std::vector<std::vector<int>>& buckets) {
  training.strategy = Strategy::bucketed;
  training.bucket_caps.clear();
  training.parameter_groups = 0;
  training.buckets = buckets;
  return predict(model, training).metrics.step;
}

/// A model in which everything can differ: kernels bound by memory or not, launches, a slower rank,
/// exceptions.
StepModel random_model(Dice& dice) {
  const Workload workload = fixtures::random_workload(dice);
  Cluster cluster = fixtures::random_cluster(dice, dice.one_in(2));
  if (dice.one_in(3)) cluster.launch.handover = dice.time(40);
  if (dice.one_in(3)) cluster.launch.wait = dice.time(20);
  StepModel model(workload, cluster, Optimizer::sgd);
  if (dice.one_in(3)) model.costs.slowest_rank = 1 + 0.01 * dice.between(1, 40);
  if (dice.one_in(3)) fixtures::differ_some_ranks(dice, model.costs);
  fixtures::free_some_copies(dice, model);
  return model;
}

}  // namespace

TEST_CASE("a step is as long as the simulated one, to the tick, under any bucketing",
          "[sim][bucket_steps]") {
  int compared = 0, asynchronous = 0, slower_rank = 0, exceptions = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Dice dice(seed);
    const StepModel model = random_model(dice);
    Training training;
    training.micro_batches = dice.one_in(3) ? dice.between(2, 3) : 1;
    training.no_sync = dice.one_in(2);
    training.gradient_as_bucket_view = dice.one_in(3);
    training.find_unused_parameters = dice.one_in(4);
    BucketSteps steps(model, training);
    for (int draw = 0; draw < 6; ++draw) {
      const std::vector<int> ends = random_ends(dice, steps.size(), dice.between(1, 4));
      const Duration expected = simulated(model, training, buckets_of(model, ends));
      CAPTURE(seed, draw, model.costs.synchronous, model.costs.slowest_rank, steps.size(),
              training.micro_batches, model.costs.exceptions.size());
      REQUIRE(steps.of(ends) == expected);
      REQUIRE(steps.of(ends, expected) == expected);
      REQUIRE(steps.of(ends, expected - Duration{1}) > expected - Duration{1});
      ++compared;
    }
    asynchronous += model.costs.synchronous ? 0 : 1;
    slower_rank += model.costs.slowest_rank > 1 && model.costs.ranks > 1 ? 1 : 0;
    exceptions += model.costs.exceptions.empty() ? 0 : 1;
  }
  CHECK(compared == 9000);
  CHECK(asynchronous > 1000);
  CHECK(slower_rank > 200);
  CHECK(exceptions > 200);
}

TEST_CASE("buckets that are not contiguous in arrival order are simulated", "[sim][bucket_steps]") {
  int scattered = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    const StepModel model = random_model(dice);
    if (model.works.arrival.size() < 3) continue;
    // The first and the last to arrive travel together, the others apart from them.
    std::vector<std::vector<int>> buckets{
        {model.works.arrival.front(), model.works.arrival.back()}};
    buckets.emplace_back(model.works.arrival.begin() + 1, model.works.arrival.end() - 1);
    BucketSteps steps(model, {});
    CHECK(steps.of(buckets) == simulated(model, {}, buckets));
    CHECK(steps.of(buckets_of(model, {1, steps.size()})) ==
          steps.of(std::vector<int>{1, steps.size()}));
    ++scattered;
  }
  CHECK(scattered > 50);
}

TEST_CASE("steps at other costs are those of a model with these costs", "[sim][bucket_steps]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    const StepModel model = random_model(dice);
    StepModel other = model;
    other.costs.passes.push_back({1.5, 0.7, 2});
    other.costs.copy_factor *= 1.2;
    if (dice.one_in(2)) other.costs.slowest_rank = 1.3;
    BucketSteps steps(model, {}), changed(steps, other.costs, 1.4), afresh(other, {}, 1.4);
    for (int draw = 0; draw < 4; ++draw) {
      const std::vector<int> ends = random_ends(dice, steps.size(), 2);
      CAPTURE(seed, draw);
      REQUIRE(changed.of(ends) == afresh.of(ends));
      REQUIRE(steps.of(ends) == BucketSteps(model, {}).of(ends));
    }
  }
}

TEST_CASE("buckets that miss, repeat or overrun gradients are refused", "[sim][bucket_steps]") {
  Dice dice(7);
  const StepModel model = random_model(dice);
  BucketSteps steps(model, {});
  const int count = steps.size();
  CHECK_THROWS_AS(steps.of(std::vector<int>{}), std::invalid_argument);
  CHECK_THROWS_AS(steps.of(std::vector<int>{count + 1}), std::invalid_argument);
  CHECK_THROWS_AS(steps.of(std::vector<int>{count, count}), std::invalid_argument);
  CHECK_THROWS_AS(steps.of(std::vector<std::vector<int>>{{0}, {0}}), std::invalid_argument);
}

}  // namespace ddpsim
