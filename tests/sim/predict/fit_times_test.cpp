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

StepMetrics alone(const StepCosts& costs) {
  return predict(costs, timed::training_of(Strategy::none)).metrics;
}

void check_met(const StepCosts& law, const MeasuredTimes& wanted) {
  StepCosts costs = law;
  fit_times(costs, Training{}, wanted);
  const StepMetrics after = alone(costs);
  const auto within_a_percent = [](Duration time) { return Approx(in_us(time)).epsilon(0.01); };
  CHECK(in_us(after.forward) == within_a_percent(*wanted.forward));
  CHECK(in_us(after.backward) == within_a_percent(*wanted.backward));
  CHECK(in_us(after.optimizer) == within_a_percent(*wanted.optimizer));
}

}  // namespace

TEST_CASE("measured times are met by the step without communication", "[sim][predict]") {
  Scenario scenario;
  scenario.workload = timed::chain(4, 2ms, 4ms, {1'000'000});
  scenario.workload.optimizer = 3ms;
  scenario.cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  scenario.times = {20ms, 50ms, 7ms};
  CHECK(alone(price(scenario)).forward == 20ms);
  CHECK(alone(price(scenario)).backward == 50ms);
  CHECK(alone(price(scenario)).optimizer == 7ms);
  // What is not given stays: 8 ms of forward, 3 of the optimizer.
  scenario.times = {{}, 50ms, {}};
  CHECK(alone(price(scenario)).forward == 8ms);
  CHECK(alone(price(scenario)).backward == 50ms);
  CHECK(alone(price(scenario)).optimizer == 3ms);
}

TEST_CASE("times are those of one micro-batch", "[sim][predict]") {
  Scenario scenario;
  scenario.workload = timed::chain(4, 2ms, 4ms, {1'000'000});
  scenario.cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  scenario.training.micro_batches = 3;
  scenario.times = {20ms, 50ms, {}};
  CHECK(alone(price(scenario)).step == 70ms);
}

TEST_CASE("fitting tells by how much the passes were scaled", "[sim][predict]") {
  const Workload workload = timed::chain(3, 2ms, 4ms, {1'000'000});
  const Cluster cluster = timed::ring(2, 0us, gigabytes_per_second(1));
  StepCosts costs = timed::costs_of(workload, cluster);
  const PassFactors factors = fit_times(costs, Training{}, {9ms, 6ms, {}});
  CHECK(factors.forward == Approx(1.5));
  CHECK(factors.backward == Approx(0.5));
  CHECK(factors.optimizer == 1);
  StepCosts by_hand = timed::costs_of(workload, cluster);
  scale(by_hand, factors);
  CHECK(alone(by_hand).step == 15ms);
}

TEST_CASE("a pass that runs nothing stays as it is", "[sim][predict]") {
  StepCosts costs = timed::costs_of(timed::in_order_example(), timed::constant(2, 1ms));
  const PassFactors factors = fit_times(costs, Training{}, {10ms, 110ms, 10ms});
  CHECK(factors.forward == 1);
  CHECK(factors.backward == Approx(2));
  CHECK(factors.optimizer == 1);
}

TEST_CASE("what the host hides of backward does not keep it from its measured time",
          "[sim][predict]") {
  // Forward runs until 110 ms. The host, free at 10, takes until 170 to enqueue backward's kernel
  // of 1 ms, of which forward hides 100: 61 ms show. In proportion they would never meet 6.2.
  Workload workload;
  workload.name = "hidden";
  workload.layers.push_back({"only", {timed::kernel(100ms)}, {timed::kernel(1ms)}});
  workload.parameters.push_back(timed::parameter("weight", 4 * KiB, 0, 0));
  StepCosts law = timed::costs_of(workload, timed::ring(1, 0us, gigabytes_per_second(1)));
  law.layers[0].forward[0].host = 10ms;
  law.layers[0].backward[0].host = 160ms;
  REQUIRE(alone(law).backward == 61ms);
  // Scaled by f, backward ends at 10 + 161 f: 6.2 ms after forward at f = 106.2 / 161.
  StepCosts costs = law;
  const PassFactors factors = fit_times(costs, Training{}, {{}, Duration{6'200us}, {}});
  CHECK(factors.backward == Approx(106.2 / 161).epsilon(1e-4));
  CHECK(in_ms(alone(costs).backward) == Approx(6.2).epsilon(1e-4));
}

TEST_CASE("any step without communication can be scaled to measured times", "[sim][predict]") {
  SECTION("of real networks, bound by the device or by the host") {
    for (const Architecture& architecture :
         {Architecture{architectures::cs336_small}, Architecture{architectures::resnet18}}) {
      const StepCosts law(architectures::build(architecture, 2, 64), timed::eight_gpus(),
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
      const StepCosts law(random_workload(dice), random_cluster(dice, false), Optimizer::adamw);
      const StepMetrics before = alone(law);
      check_met(law, {scaled(before.forward, factor()), scaled(before.backward, factor()),
                      scaled(before.optimizer, factor())});
    }
  }
}
