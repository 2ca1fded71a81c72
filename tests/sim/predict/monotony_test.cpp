// Without interference and with one communicator in issue order, a worse link never makes a step
// shorter: every time is a maximum or a sum of others.
#include <catch2/catch.hpp>

#include "model/parallel/policy/bucket_plan.hpp"
#include "sim/predict/predict.hpp"
#include "tests/sim/predict/random_steps.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;

namespace {

/// Calls `worsen(cluster, model, dice)` on copies of random steps of fixed buckets and compares.
template <typename Better, typename Worse>
void never_shorter(std::uint64_t seed, Better&& cluster_of_worse, Worse&& costs_of_worse) {
  Dice dice(seed);
  int longer = 0;
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(seed, round);
    const Workload workload = random_workload(dice);
    const Cluster cluster = random_cluster(dice, false);
    Training training = random_training(dice, workload);
    const StepModel model = timed::model_of(workload, cluster);
    for (const Bucket& bucket : plan_buckets(model.works, training))
      training.buckets.push_back({bucket.parameters.begin(), bucket.parameters.end()});

    Cluster worse = cluster;
    cluster_of_worse(worse, dice);
    StepModel more = timed::model_of(workload, worse);
    costs_of_worse(more, dice);
    const Duration before = predict(model, training).metrics.step;
    const Duration after = predict(more, training).metrics.step;
    REQUIRE(after >= before);
    longer += after > before;
  }
  CHECK(longer > rounds / 3);  // steps of one rank or without communication do not notice
}

constexpr auto same_cluster = [](Cluster&, Dice&) {};
constexpr auto same_model = [](StepModel&, Dice&) {};

}  // namespace

TEST_CASE("more latency never makes a step shorter", "[sim][predict]") {
  never_shorter(
      21, [](Cluster& cluster, Dice& dice) { cluster.intra_node.latency += dice.time(20); },
      same_model);
}

TEST_CASE("less bandwidth never makes a step shorter", "[sim][predict]") {
  never_shorter(
      22,
      [](Cluster& cluster, Dice& dice) {
        cluster.intra_node.bandwidth.bytes_per_second *= dice.between(1, 99) / 100.0;
      },
      same_model);
}

TEST_CASE("more bytes on the wire never make a step shorter", "[sim][predict]") {
  never_shorter(23, same_cluster, [](StepModel& model, Dice& dice) {
    for (GradientInfo& gradient : model.works.gradients)
      gradient.size += {dice.between(0, 1'000'000)};
  });
}

TEST_CASE("a dearer collective call never makes a step shorter", "[sim][predict]") {
  never_shorter(24, same_cluster, [](StepModel& model, Dice& dice) {
    model.costs.collective.call_overhead += dice.time(30);
    model.costs.launch.collective += dice.time(30);
  });
}
