#include "sim/predict/fit_times.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "sim/predict/fit_times.hpp"
#include "sim/predict/predict.hpp"
#include "tests/model/workload/architectures.hpp"
#include "tests/sim/predict/random_steps.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

StepMetrics alone(const StepModel& model) {
  return predict(model, timed::training_of(Strategy::none)).metrics;
}

void check_met(const StepModel& law, const MeasuredTimes& wanted) {
  StepModel model = law;
  fit_times(model, Training{}, wanted);
  const StepMetrics after = alone(model);
  const auto met = [](Duration time) { return Approx(in_us(time)).epsilon(2e-6); };
  CHECK(in_us(after.forward) == met(*wanted.forward));
  CHECK(in_us(after.backward) == met(*wanted.backward));
  CHECK(in_us(after.optimizer) == met(*wanted.optimizer));
}

}  // namespace

TEST_CASE("measured times are met by the step without communication", "[sim][predict]") {
  Scenario scenario;
  scenario.workload = timed::chain(4, 2ms, 4ms, {1'000'000});
  scenario.workload.optimizer = 3ms;
  scenario.cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  scenario.times = {20ms, 50ms, 7ms};
  CHECK(alone(model_of(scenario)).forward == 20ms);
  CHECK(alone(model_of(scenario)).backward == 50ms);
  CHECK(alone(model_of(scenario)).optimizer == 7ms);
  // What is not given stays: 8 ms of forward, 3 of the optimizer.
  scenario.times = {{}, 50ms, {}};
  CHECK(alone(model_of(scenario)).forward == 8ms);
  CHECK(alone(model_of(scenario)).backward == 50ms);
  CHECK(alone(model_of(scenario)).optimizer == 3ms);
}

TEST_CASE("times are those of one micro-batch", "[sim][predict]") {
  Scenario scenario;
  scenario.workload = timed::chain(4, 2ms, 4ms, {1'000'000});
  scenario.cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  scenario.training.micro_batches = 3;
  scenario.times = {20ms, 50ms, {}};
  CHECK(alone(model_of(scenario)).step == 70ms);
}

TEST_CASE("fitting tells by how much the passes were scaled", "[sim][predict]") {
  const Workload workload = timed::chain(3, 2ms, 4ms, {1'000'000});
  const Cluster cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  StepModel model = timed::model_of(workload, cluster);
  const PassFactors factors = fit_times(model, Training{}, {9ms, 6ms, {}});
  CHECK(factors.forward == Approx(1.5));
  CHECK(factors.backward == Approx(0.5));
  CHECK(factors.optimizer == 1);
  StepModel by_hand = timed::model_of(workload, cluster);
  by_hand.costs.passes.push_back(factors);
  CHECK(alone(by_hand).step == 15ms);
}

TEST_CASE("a pass that runs nothing stays as it is", "[sim][predict]") {
  StepModel model = timed::model_of(timed::in_order_example(), timed::constant(2, 1ms));
  const PassFactors factors = fit_times(model, Training{}, {10ms, 110ms, 10ms});
  CHECK(factors.forward == 1);
  CHECK(factors.backward == Approx(2));
  CHECK(factors.optimizer == 1);
}

TEST_CASE("what the host hides of backward does not keep it from its measured time",
          "[sim][predict]") {
  // Launches of 10 ms. Forward runs until 110 ms. The host, free at 10, takes until 170 to enqueue
  // backward's sixteen kernels, the last of 1 ms and the others of none, of which forward hides
  // 100:
  // 61 ms show. In proportion they would never meet 6.2.
  Workload workload;
  workload.name = "hidden";
  workload.layers.push_back({"only", {timed::kernel(100ms)}, {}});
  workload.layers[0].backward.assign(15, timed::kernel(0ms));
  workload.layers[0].backward.push_back(timed::kernel(1ms));
  workload.parameters.push_back(timed::parameter("weight", 4 * KiB, 0, 15));
  const StepModel law =
      timed::with_plain_launches(workload, timed::ring(1, 0us, gigabytes_per_second(1)), 10ms);
  REQUIRE(alone(law).backward == 61ms);
  // Scaled by f, backward ends at 10 + 161 f: 6.2 ms after forward at f = 106.2 / 161.
  StepModel model = law;
  const PassFactors factors = fit_times(model, Training{}, {{}, Duration{6'200us}, {}});
  CHECK(factors.backward == Approx(106.2 / 161).epsilon(1e-4));
  CHECK(in_ms(alone(model).backward) == Approx(6.2).epsilon(1e-4));
}

TEST_CASE("any step without communication can be scaled to measured times", "[sim][predict]") {
  SECTION("of real networks, bound by the device or by the host") {
    for (const Architecture& architecture :
         {Architecture{architectures::cs336_small}, Architecture{architectures::resnet18}}) {
      const StepModel law(architectures::build(architecture, 2, 64), timed::eight_gpus(),
                          Optimizer::adamw_loop);
      const StepMetrics before = alone(law);
      for (const double forward : {0.14, 1.3, 7.0}) {
        for (const double backward : {0.14, 0.8, 7.0}) {
          CAPTURE(forward, backward);
          check_met(law, {scaled(before.forward, forward), scaled(before.backward, backward),
                          before.optimizer / 2});
        }
      }
    }
  }
  SECTION("of random ones") {
    Dice dice(31);
    const auto factor = [&] { return std::exp(dice.between(-200, 200) / 100.0); };
    for (int round = 0; round < 200; ++round) {
      CAPTURE(round);
      const StepModel law(random_workload(dice), random_cluster(dice, false), Optimizer::adamw);
      const StepMetrics before = alone(law);
      check_met(law, {scaled(before.forward, factor()), scaled(before.backward, factor()),
                      scaled(before.optimizer, factor())});
    }
  }
}
