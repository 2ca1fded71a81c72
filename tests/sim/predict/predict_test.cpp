#include "sim/predict/predict.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/predict/what_if.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "tests/sim/predict/random_trainings.hpp"
#include "tests/sim/predict/same_steps.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

/// Three layers of 2 ms forward and 4 ms backward, 1 MB of gradient each; two ranks on a ring of
/// 1 GB/s without latency: 1 ms per all-reduce and MB (2 (2 - 1) / 2 = 1). Copies are free.
StepModel three_layers() {
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}),
                                    timed::ring(2, 0us, gigabytes_per_second(1)));
  timed::free_copies(model);
  return model;
}

Duration step_of(const StepModel& model, Strategy strategy) {
  return predict(model, timed::training_of(strategy)).metrics.step;
}

}  // namespace

TEST_CASE("without communication a step is its compute", "[sim][predict]") {
  const Training none = timed::training_of(Strategy::none);
  const StepMetrics metrics = predict(three_layers(), none).metrics;
  CHECK(metrics.step == 18ms);
  CHECK(metrics.forward == 6ms);
  CHECK(metrics.backward == 12ms);
  CHECK(metrics.collectives == 0);
  CHECK(metrics.bound == Bound::compute);
}

TEST_CASE("what happens after backward adds up", "[sim][predict]") {
  // Three all-reduces of 1 ms, or one of 3 ms, after 18 ms of compute.
  CHECK(step_of(three_layers(), Strategy::naive) == 21ms);
  CHECK(step_of(three_layers(), Strategy::flat) == 21ms);
}

TEST_CASE("no step is shorter than its batches take to be made", "[sim][predict]") {
  StepModel model = three_layers();
  const auto tuned = [&] {
    BucketSteps steps(model, Training{});
    return steps.of(std::vector<std::vector<int>>{{2, 1, 0}});
  };
  const Duration of_one_bucket = tuned();
  model.costs.least_step = 20ms;
  CHECK(step_of(model, Strategy::none) == 20ms);
  CHECK(step_of(model, Strategy::overlap) == 20ms);
  CHECK(step_of(model, Strategy::naive) == 21ms);  // it computes and sends for longer
  CHECK(step_length(model.costs, plan_step(model.works, timed::training_of(Strategy::none))) ==
        20ms);
  CHECK(tuned() == std::max<Duration>(of_one_bucket, 20ms));
  model.costs.least_step = 30ms;
  CHECK(tuned() == 30ms);
}

TEST_CASE("a wait for batches hides no communication", "[sim][predict]") {
  StepModel model = three_layers();
  model.costs.least_step = 20ms;
  const auto metrics_of = [&](Strategy strategy) {
    return predict(model, timed::training_of(strategy)).metrics;
  };
  // 18 ms of computation; with overlap one all-reduce of 1 ms is exposed, naively all three are.
  const StepMetrics none = metrics_of(Strategy::none), overlap = metrics_of(Strategy::overlap),
                    naive = metrics_of(Strategy::naive);
  CHECK(none.input_wait == 2ms);
  CHECK(none.bound == Bound::input);
  CHECK(overlap.step == 20ms);
  CHECK(overlap.input_wait == 1ms);
  CHECK(overlap.bound == Bound::input);
  CHECK(exposed(overlap, none) == 1ms);
  CHECK(overlap_ratio(overlap, none) == Approx(2.0 / 3));
  CHECK(naive.step == 21ms);
  CHECK(naive.input_wait == 0ms);
  CHECK(naive.bound != Bound::input);
  CHECK(exposed(naive, none) == 3ms);
  CHECK(overlap_ratio(naive, none) == 0);
}

TEST_CASE("only the last gradient cannot hide", "[sim][predict]") {
  // Gradients at 10, 14 and 18 ms, reduced in 1 ms each: the last one until 19.
  CHECK(step_of(three_layers(), Strategy::overlap) == 19ms);
}

TEST_CASE("a bucket waits for its last gradient", "[sim][predict]") {
  // Explicit buckets of the last two layers and the first: ready at 14 and 18, 2 and 1 ms.
  Training training;
  training.buckets = {{2, 1}, {0}};
  const Step prediction = predict(three_layers(), training);
  REQUIRE(prediction.metrics.buckets.size() == 2);
  CHECK(prediction.metrics.buckets[0].start == Instant{14ms});
  CHECK(prediction.metrics.buckets[0].end == Instant{16ms});
  CHECK(prediction.metrics.buckets[1].start == Instant{18ms});
  CHECK(prediction.metrics.step == 19ms);
  CHECK(prediction.metrics.wire == Bytes{3'000'000});
}

TEST_CASE("DDP's first iteration does not overlap", "[sim][predict]") {
  // One bucket of 3 MB, ready at 18.
  Training training;
  training.iteration = 1;
  const Step prediction = predict(three_layers(), training);
  CHECK(prediction.metrics.collectives == 1);
  CHECK(prediction.metrics.buckets[0].start == Instant{18ms});
  CHECK(prediction.metrics.step == 21ms);
}

TEST_CASE("R26: micro-batches communicate each time, or with no_sync once", "[sim][predict]") {
  Training training = timed::training_of(Strategy::overlap);
  training.micro_batches = 3;
  StepMetrics metrics = predict(three_layers(), training).metrics;
  CHECK(metrics.collectives == 9);
  CHECK(metrics.wire == Bytes{9'000'000});
  // The tail of 1 ms each time: the next forward waits for the averaged gradients.
  CHECK(metrics.step == 3 * Duration{19ms});

  training.no_sync = true;
  metrics = predict(three_layers(), training).metrics;
  CHECK(metrics.collectives == 3);
  CHECK(metrics.wire == Bytes{3'000'000});
  CHECK(metrics.step == 18ms + 18ms + 19ms);
}

TEST_CASE("one rank reduces in no time", "[sim][predict]") {
  const Workload chain = timed::chain(3, 2ms, 4ms, {1'000'000});
  StepModel model = timed::model_of(chain, timed::ring(1, 5us, gigabytes_per_second(1)));
  timed::free_copies(model);
  for (const Strategy strategy : replicating_strategies) CHECK(step_of(model, strategy) == 18ms);
}

TEST_CASE("a synchronous device computes the same step, one thing at a time", "[sim][predict]") {
  // Gradients at 10, 14 and 18 as before: the host goes on computing while bytes move.
  Cluster cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  cluster.device.synchronous = true;
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}), cluster);
  timed::free_copies(model);
  CHECK(step_of(model, Strategy::none) == 18ms);
  CHECK(step_of(model, Strategy::naive) == 21ms);
  CHECK(step_of(model, Strategy::overlap) == 19ms);
  // Issuing an all-reduce now takes the thread 1 ms, three times: the last is in at 21 and ends
  // at 22.
  model.costs.launch.collective = 1ms;
  CHECK(step_of(model, Strategy::overlap) == 22ms);
}

TEST_CASE("a step that is planned already is predicted like the step it is of", "[sim][predict]") {
  int different = 0, equally_long = 0, shorter = 0, built_ones = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Workload workload = any_workload(dice);
    StepModel model(workload, any_cluster(dice), Optimizer::sgd);
    if (dice.one_in(3)) model.costs.slowest_rank = 1.2;
    const Training training = any_training(dice, workload);
    std::shared_ptr<const PlannedStep> planned;
    try {
      planned = std::make_shared<PlannedStep>(plan_step(model.works, training));
    } catch (const std::invalid_argument&) {
      CHECK_THROWS_AS(predict(model, training), std::invalid_argument);
      continue;
    }
    const Step built = predict(model.costs, training, planned), whole = predict(model, training);
    REQUIRE(same(built, whole));
    ++built_ones;
    CHECK(built.metrics.step == whole.metrics.step);
    CHECK(built.metrics.communication == whole.metrics.communication);
    CHECK(built.metrics.wire == whole.metrics.wire);
    // Lengths alone, for which the slowest rank stands for all: but for what a typical rank's
    // kernels do to a collective while the slowest computes nothing.
    const Duration length = step_length(model.costs, *planned);
    CHECK(in_us(length) == Approx(in_us(whole.metrics.step)).epsilon(0.05));
    shorter += in_us(length) < 0.995 * in_us(whole.metrics.step);
    CHECK(length <= whole.metrics.step);
    equally_long += length == whole.metrics.step;
    CHECK(built.rank().program.tasks.size() == whole.rank().program.tasks.size());
    // What it costs is the costs' matter alone.
    const CostModel faster = with(model.costs, Change::link_twice_as_fast);
    StepModel other = model;
    other.costs = faster;
    REQUIRE(same(predict(faster, training, planned), predict(other, training)));
    different += predict(other, training).metrics.step != whole.metrics.step;
  }
  CHECK(different > 80);
  CHECK(equally_long >= built_ones * 98 / 100);
  CHECK(shorter <= built_ones * 5 / 1000);
}

TEST_CASE("a step beyond six hours is refused, whoever asks", "[sim][predict]") {
  // An hour for each layer.
  const auto hours = [](int layers) {
    return timed::model_of(timed::chain(layers, 30min, 30min, Bytes{1000}),
                           timed::ring(2, 1us, gigabytes_per_second(1)));
  };
  const StepModel model = hours(7);
  const std::string refused =
      "a step of 7 hours is beyond what is simulated (6 hours): check batch, bandwidth and latency";
  CHECK_THROWS_WITH(predict(model, Training{}), refused);
  CHECK_THROWS_WITH(predict(model, timed::training_of(Strategy::none)), refused);
  CHECK_THROWS_WITH(BucketSteps(model, Training{}), refused);
  CHECK_NOTHROW(predict(hours(5), Training{}));
  CHECK_NOTHROW(BucketSteps(hours(5), Training{}));
}
