#include "model/cost/step_costs.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "tests/model/ddp/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

/// 1 TB/s of memory: a millionth of a second per MB.
Cluster cluster() {
  return ring(2, 1us, gigabytes_per_second(1));
}

constexpr Duration ramp = 2us;

}  // namespace

TEST_CASE("a copy reads and writes, an accumulation reads twice", "[model][step_costs]") {
  const StepCosts costs = costs_of(chain(1, 1ms, 1ms, {1'000'000}), cluster());
  CHECK(costs.copy_in.at(0).work == 2us + ramp);
  CHECK(costs.copy_out.at(0).work == 2us + ramp);
  CHECK(costs.divide.at(0).work == 2us + ramp);
  CHECK(costs.accumulates.at(0).work == 3us + ramp);
}

TEST_CASE("concatenating and dividing the whole move all gradients in one launch",
          "[model][step_costs]") {
  const StepCosts costs = costs_of(chain(5, 1ms, 1ms, {1'000'000}), cluster());
  for (const KernelCost& whole : {costs.concatenate, costs.flat_divide}) {
    CHECK(whole.work == 10us + ramp);
    CHECK(whole.launches == 1);
  }
}

TEST_CASE("hooks hang on the kernel that completes their gradient", "[model][step_costs]") {
  const StepCosts costs = costs_of(two_layers(), cluster());
  CHECK(costs.arrival == std::vector<int>{2, 1, 0});
  REQUIRE(costs.hooks_of.size() == 2);
  CHECK(costs.hooks_of[0] == std::vector<std::vector<std::int32_t>>{{0}});
  CHECK(costs.hooks_of[1] == std::vector<std::vector<std::int32_t>>{{2, 1}, {}});
}

TEST_CASE("kernels keep their layers and callers", "[model][step_costs]") {
  Cluster launching = cluster();
  launching.launch.kernel = 1us;
  const StepCosts costs = costs_of(two_layers(), launching);
  REQUIRE(costs.layers.size() == 2);
  CHECK(costs.layers[1].backward.at(1).work == 3ms);
  CHECK(in_us(costs.layers[0].forward.at(0).host) ==
        Approx(launches_per_operation(Caller::forward_module)));
  CHECK(in_us(costs.layers[0].backward.at(0).host) ==
        Approx(launches_per_operation(Caller::autograd)));
  CHECK(costs.copy_in[0].host == 1us);
}

TEST_CASE("a measured optimizer stands in place of the law", "[model][step_costs]") {
  Workload workload = two_layers();
  workload.optimizer = 5ms;
  REQUIRE(StepCosts(workload, cluster(), Optimizer::adamw_loop).optimizer.size() == 1);
  CHECK(StepCosts(workload, cluster(), Optimizer::adamw_loop).optimizer[0].work == 5ms);
  workload.optimizer.reset();
  CHECK(StepCosts(workload, cluster(), Optimizer::adamw_loop).optimizer.size() == 3);
  CHECK(StepCosts(workload, cluster(), Optimizer::none).optimizer.empty());
}

TEST_CASE("the largest of several draws from a normal distribution", "[model][step_costs]") {
  CHECK(expected_largest(1) == Approx(0).margin(1e-12));
  CHECK(expected_largest(2) == Approx(1 / std::sqrt(std::acos(-1.0))));
  CHECK(expected_largest(3) == Approx(3 / (2 * std::sqrt(std::acos(-1.0)))));
  // Harter, Expected values of normal order statistics (Biometrika 48, 1961).
  CHECK(expected_largest(10) == Approx(1.53875).epsilon(1e-5));
  CHECK(expected_largest(100) == Approx(2.50759).epsilon(1e-5));
}

TEST_CASE("the slowest rank is as measured, or else as the spread of steps makes likely",
          "[model][step_costs]") {
  Workload workload = two_layers();
  CHECK(costs_of(workload, cluster()).slowest_rank == 1);
  workload.step_spread = 0.1;
  Cluster spread = cluster();
  CHECK(costs_of(workload, spread).slowest_rank ==
        Approx(1 + 0.1 * expected_largest(spread.ranks())));
  spread.calibration.emplace().slowest_rank = 1.02;
  CHECK(costs_of(workload, spread).slowest_rank == 1.02);
}

TEST_CASE("scaling a pass scales its device times", "[model][step_costs]") {
  const StepCosts before = costs_of(two_layers(), cluster());
  StepCosts after = before;
  scale(after, {2, 3, 0.5});
  CHECK(after.layers[0].forward[0].work == 2ms);
  CHECK(after.layers[0].forward[0].last_launch == 2ms);
  CHECK(after.layers[1].backward[0].work == 6ms);
  CHECK(after.layers[1].backward[1].work == 9ms);
  CHECK(after.optimizer[0].work == 500us);
  CHECK(after.copy_in[0].work == before.copy_in[0].work);  // no part of a pass
}

TEST_CASE("a slower device leaves the host as it is, a faster one needs it to keep up",
          "[model][step_costs]") {
  // Forward is 2 ms of work behind 200 us of host, backward 7 ms behind 8 of the host's.
  StepCosts before = costs_of(two_layers(), cluster());
  for (auto& layer : before.layers) {
    for (KernelCost& kernel : layer.forward) kernel.host = 100us;
    for (KernelCost& kernel : layer.backward) kernel.host = 2667us;
  }
  StepCosts slow = before, fast = before;
  scale(slow, {2, 2, 1});
  CHECK(slow.layers[0].forward[0].host == 100us);
  CHECK(slow.layers[0].backward[0].host == 5334us);  // it bounds the pass
  scale(fast, {0.5, 0.5, 1});
  CHECK(fast.layers[0].forward[0].host == 50us);
  CHECK(fast.layers[0].backward[0].host == Duration{1'333'500ns});
}
