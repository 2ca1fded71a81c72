#include "sim/predict/what_if.hpp"

#include <numeric>

#include <catch2/catch.hpp>

#include "model/timeline/why.hpp"
#include "sim/predict/predict.hpp"
#include "tests/model/cost/public_sweeps.hpp"
#include "tests/sim/predict/models.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// Three layers of 2 ms forward and 4 ms backward, 1 MB of gradient each; two ranks on a ring of
/// 1 GB/s and 250 us: an all-reduce takes 2 x 0.25 + 1 = 1.5 ms. Copies are free.
StepModel three_layers_with_latency(bool synchronous = false) {
  Cluster cluster = timed::ring(2, 250us, gigabytes_per_second(1));
  cluster.device.synchronous = synchronous;
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}), cluster);
  timed::free_copies(model);
  return model;
}

Duration step_under(const StepModel& model, Strategy strategy) {
  return predict(model, timed::training_of(strategy)).metrics.step;
}

Duration step_under(const StepModel& model, Strategy strategy, Change change) {
  for (const WhatIf& each : what_if(model, timed::training_of(strategy)))
    if (each.change == change) return each.step;
  FAIL("not among the changes: " << name_of(change));
  return {};
}

std::vector<ExposedBucket> why(const StepModel& model, Strategy strategy) {
  const Step step = predict(model, timed::training_of(strategy));
  return why_exposed(step.job(), step.times, step.metrics, step.ranks.front());
}

}  // namespace

TEST_CASE("a link twice as fast halves what moves, no latency takes the rest", "[sim][what_if]") {
  // Backward ends at 18; naive adds three all-reduces of 0.5 + 1.
  const StepModel model = three_layers_with_latency();
  CHECK(step_under(model, Strategy::naive) == 22500us);
  CHECK(step_under(model, Strategy::naive, Change::link_twice_as_fast) == 21ms);
  CHECK(step_under(model, Strategy::naive, Change::no_latency) == 21ms);
  // Overlapped, only the last one shows: at 18.
  CHECK(step_under(model, Strategy::overlap) == 19500us);
  CHECK(step_under(model, Strategy::overlap, Change::link_twice_as_fast) == 19ms);
  CHECK(step_under(model, Strategy::overlap, Change::no_latency) == 19ms);
}

TEST_CASE("a link twice as fast is the link whose keys say so", "[sim][what_if]") {
  // A tree's pipeline fills sooner, GPUs that cross the host's memory slow each other less, and
  // what slots, channels and steps take stays.
  Cluster tree =
      sweeps::nodes(4, sweeps::node(90, 8, LinkKind::nvlink, 450), 8, 3.125, LinkKind::ethernet);
  Cluster host = sweeps::node(86, 2, LinkKind::pcie, 31.5);
  host.device.peer_to_peer = false;
  host.intra_node.carries = 2.6 / 31.5;
  Cluster nics =
      sweeps::nodes(2, sweeps::node(90, 8, LinkKind::nvlink, 450), 8, 40, LinkKind::infiniband);
  for (Cluster cluster : {tree, host, nics}) {
    cluster.device.memory_bandwidth = gigabytes_per_second(2000);
    cluster.device.multiprocessors = 100;
    const Workload layers = timed::chain(3, 2ms, 4ms, {50'000'000});
    const StepModel model = timed::model_of(layers, cluster);
    for (Link* link : {&cluster.intra_node, &cluster.inter_node}) {
      link->bandwidth.bytes_per_second *= 2;
      link->nccl_bandwidth.bytes_per_second *= 2;
    }
    StepModel doubled = timed::model_of(layers, cluster);
    for (const Strategy strategy : {Strategy::naive, Strategy::flat, Strategy::overlap}) {
      CHECK(step_under(model, strategy, Change::link_twice_as_fast) ==
            step_under(doubled, strategy));
      CHECK(step_under(doubled, strategy) < step_under(model, strategy));
    }
  }
}

TEST_CASE("a link twice as fast leaves the host's memory as it is", "[sim][what_if]") {
  Cluster cluster = sweeps::node(86, 2, LinkKind::pcie, 31.5);
  cluster.device.peer_to_peer = false;
  cluster.device.memory_bandwidth = gigabytes_per_second(900);
  const Workload layers = timed::chain(3, 2ms, 4ms, {50'000'000});
  const StepModel model = timed::model_of(layers, cluster);
  for (Bandwidth* rate : {&cluster.intra_node.bandwidth, &cluster.intra_node.nccl_bandwidth})
    rate->bytes_per_second *= 2;
  const Duration doubled = step_under(timed::model_of(layers, cluster), Strategy::flat);
  CHECK(step_under(model, Strategy::flat, Change::link_twice_as_fast) == doubled);
  CHECK(doubled == step_under(model, Strategy::flat));  // PCIe 4: kernels load 2.6 GB/s of it
}

TEST_CASE("no latency leaves what fills a tree's pipeline", "[sim][what_if]") {
  Cluster cluster =
      sweeps::nodes(4, sweeps::node(90, 8, LinkKind::nvlink, 450), 8, 3.125, LinkKind::ethernet);
  cluster.forced = {NcclAlgorithm::tree, NcclProtocol::simple, {}};
  cluster.device.memory_bandwidth = gigabytes_per_second(2000);
  cluster.interference = FixedInterference{1, 1};
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {50'000'000}), cluster);
  timed::free_copies(model);
  const CollectiveCost cost = model.costs.all_reduce({150'000'000});
  REQUIRE(cost.filling > cost.latency / 2);
  CHECK(step_under(model, Strategy::flat) - step_under(model, Strategy::flat, Change::no_latency) ==
        cost.latency - cost.filling);
}

TEST_CASE("a table's transfers take half the time over a link twice as fast", "[sim][what_if]") {
  Cluster cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  cluster.intra_node.all_reduce = {{{1'000'000}, 2ms}, {{3'000'000}, 4ms}};
  cluster.collectives = CollectiveModel::automatic;
  const StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}), cluster);
  const CollectiveCost cost = model.costs.all_reduce({3'000'000});
  REQUIRE(cost.transfer == 4ms);
  CHECK(step_under(model, Strategy::flat) -
            step_under(model, Strategy::flat, Change::link_twice_as_fast) ==
        2ms);
}

TEST_CASE("a free launch takes the host's part", "[sim][what_if]") {
  // The host spends 1 ms on each of 3 + 3 kernels that take 0.5: they end at 6.5 (flat has its
  // concatenate besides, of no time but the host's: launched at 7). Issuing the collective takes 2.
  StepModel model = timed::with_plain_launches(timed::chain(3, 500us, 500us, {1'000'000}),
                                               timed::ring(2, 250us, gigabytes_per_second(1)), 1ms);
  timed::free_copies(model);
  model.works.concatenate = timed::taking(model, Operation::concatenate, 0ms);
  model.costs.launch.collective = 2ms;
  // At 9 an all-reduce of 0.5 + 3; at no cost to the host, at 3.
  CHECK(step_under(model, Strategy::flat) == 12500us);
  CHECK(step_under(model, Strategy::flat, Change::free_launch) == 6500us);
  // Without communication too the host set the pace: 6.5 against 3.
  CHECK(step_under(model, Strategy::none) == 6500us);
  CHECK(step_under(model, Strategy::none, Change::free_launch) == 3ms);
  // Of 3.5 exposed, 2 went to the launch: ready at 6.5, called at 7.
  const auto buckets = why(model, Strategy::flat);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].by(Cause::launch) == 2ms);
  CHECK(buckets[0].by(Cause::turn) == 500us);
  CHECK(buckets[0].by(Cause::gradients) == 1ms);
}

TEST_CASE("without interference kernels run as if alone", "[sim][what_if]") {
  // 1.5 ms of kernels run beside each of the first two all-reduces, at half their speed.
  Cluster cluster = timed::ring(2, 250us, gigabytes_per_second(1));
  cluster.interference = FixedInterference{2, 1};
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}), cluster);
  timed::free_copies(model);
  // Two all-reduces of 1.5 cost 0.75 each, then the third is exposed.
  CHECK(step_under(model, Strategy::overlap) == 21ms);
  CHECK(step_under(model, Strategy::overlap, Change::no_interference) == 19500us);
}

TEST_CASE("even ranks are asked about where they are not", "[sim][what_if]") {
  StepModel model = three_layers_with_latency();
  CHECK(what_if(model, timed::training_of(Strategy::flat)).size() == 4);
  // The other rank computes for 18 x 1.5 = 27 ms; the all-reduce of 3 MB takes 0.5 + 3.
  model.costs.slowest_rank = 1.5;
  CHECK(step_under(model, Strategy::flat) == 30500us);
  CHECK(step_under(model, Strategy::flat, Change::even_ranks) == 21500us);
  const auto buckets = why(model, Strategy::flat);
  REQUIRE(buckets.size() == 1);
  // It waited for 9 before its 3.5, which even ranks would not hide either.
  CHECK(buckets[0].by(Cause::slowest_rank) == 0us);
  CHECK(buckets[0].by(Cause::gradients) == 3500us);
}

TEST_CASE("buckets that queue up wait for each other", "[sim][what_if]") {
  // Gradients at 10, 14 and 18; an all-reduce of 0.5 + 6 ms: 10 to 16.5, to 23, to 29.5.
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {6'000'000}),
                                    timed::ring(2, 250us, gigabytes_per_second(1)));
  timed::free_copies(model);
  const auto buckets = why(model, Strategy::overlap);
  REQUIRE(buckets.size() == 2);
  // The second: exposed from 18 to 23, having waited from 14 to 16.5; the third from 23 to 29.5,
  // having waited for 5.
  CHECK(buckets[0].by(Cause::previous) == 2500us);
  CHECK(buckets[0].by(Cause::gradients) == 2500us);
  CHECK(buckets[1].by(Cause::previous) == 5ms);
  CHECK(buckets[1].by(Cause::gradients) == 1500us);
  CHECK(buckets[1].cause == Cause::previous);
}

TEST_CASE("on a synchronous device the host's own work is a launch too", "[sim][what_if]") {
  // Backward ends at 18 on the host thread, which then issues for 1 ms; the thread that reduces
  // wakes up at once. 19 to 22.5, all exposed: the host waits.
  StepModel model = three_layers_with_latency(true);
  model.costs.launch.collective = 1ms;
  CHECK(step_under(model, Strategy::flat) == 22500us);
  CHECK(step_under(model, Strategy::flat, Change::free_launch) == 21500us);
  const auto buckets = why(model, Strategy::flat);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].by(Cause::launch) == 1ms);
  CHECK(buckets[0].by(Cause::gradients) == 2500us);
}

TEST_CASE("the shares of every exposed bucket sum to its exposed time", "[sim][what_if]") {
  StepModel model =
      timed::model_of(timed::chain(12, 100us, 200us, {3'000'000}), timed::eight_gpus());
  for (const double slowest : {1.0, 1.2})
    for (const Strategy strategy : all_strategies) {
      model.costs.slowest_rank = slowest;
      const Step step = predict(model, timed::training_of(strategy));
      std::size_t exposed_buckets = 0;
      for (const BucketTimes& bucket : step.metrics.buckets)
        exposed_buckets += bucket.exposed > Duration::zero();
      const auto buckets = why_exposed(step.job(), step.times, step.metrics, step.ranks.front());
      CHECK(buckets.size() == exposed_buckets);
      for (const ExposedBucket& bucket : buckets) {
        CHECK(std::accumulate(bucket.exposed_by.begin(), bucket.exposed_by.end(), Duration{}) ==
              bucket.times.exposed);
        // A single rank waits for nobody.
        if (slowest == 1) CHECK(bucket.by(Cause::slowest_rank) == Duration::zero());
      }
    }
}

TEST_CASE("of a hook of several launches a free launch leaves the host's own time",
          "[sim][what_if]") {
  // The hook takes the host 40 us besides its four launches, the device four ramps of 2 us: the
  // first is in at 10 us. Launched at a cost, the last one holds up a quarter of that; free,
  // nothing.
  Workload workload = timed::chain(1, 1us, 1us, {4});
  CalibratedCluster cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  cluster.launch.kernel = 1us;
  const StepModel model = timed::model_of(workload, cluster);
  Training training = timed::training_of(Strategy::none);
  UserHook hook;
  hook.kind = UserHookKind::plugin;
  hook.launches = 4;
  hook.host = 40us;
  hook.groups = {{0}};
  training.hooks = {hook};
  for (const WhatIf& each : what_if(model, training))
    if (each.change == Change::free_launch) CHECK(each.step == 40us);
}
