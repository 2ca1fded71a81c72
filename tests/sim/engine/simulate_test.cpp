#include "sim/engine/simulate.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/sim/predict/fixtures.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

TEST_CASE("compute and communication run side by side", "[sim][simulate]") {
  // The all-reduce of the first kernel's gradient runs beside the second kernel; the second one
  // finds the communication stream free again.
  Script step;
  const auto first = step.add(kernel(10ms));
  const auto early = step.add(collective(15ms), {first});
  const auto second = step.add(kernel(20ms));
  const auto late = step.add(collective(5ms), {second});
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, first) == Window{0ms, 10ms});
  CHECK(work_of(timeline, second) == Window{10ms, 30ms});
  CHECK(work_of(timeline, early) == Window{10ms, 25ms});
  CHECK(work_of(timeline, late) == Window{30ms, 35ms});
  CHECK(length(timeline) == 35ms);
}

TEST_CASE("a stream keeps its order even if a later task could begin earlier", "[sim][simulate]") {
  // The first collective waits until 30; the second, ready at 10, stays behind it.
  Script step;
  const auto first = step.add(kernel(10ms));
  const auto second = step.add(kernel(20ms));
  const auto slow = step.add(collective(15ms), {second});
  const auto quick = step.add(collective(5ms), {first});
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, slow) == Window{30ms, 45ms});
  CHECK(work_of(timeline, quick) == Window{45ms, 50ms});
}

TEST_CASE("a wait holds the compute stream and not the host", "[sim][simulate]") {
  Script step;
  const auto sent = step.add(collective(20ms));
  const auto before = step.add(launched(kernel(5ms), 1ms));
  const auto held = step.add(wait(), {sent});
  const auto after = step.add(launched(kernel(5ms), 1ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, before) == Window{1ms, 6ms});
  CHECK(work_of(timeline, held) == Window{20ms, 20ms});
  CHECK(work_of(timeline, after) == Window{20ms, 25ms});
  CHECK(enqueueing_of(timeline, after) == Window{1ms, 2ms});
}

TEST_CASE("the slower of host and device sets the pace", "[sim][simulate]") {
  SECTION("a device behind its host runs without a gap") {
    Script step;
    const auto first = step.add(launched(kernel(10ms), 3ms));
    const auto second = step.add(launched(kernel(10ms), 3ms));
    const Timeline timeline = simulate(step);
    CHECK(work_of(timeline, first) == Window{3ms, 13ms});
    CHECK(work_of(timeline, second) == Window{13ms, 23ms});
    CHECK(enqueueing_of(timeline, second) == Window{3ms, 6ms});
  }
  SECTION("a device ahead of it waits for every launch") {
    Script step;
    const auto first = step.add(launched(kernel(1ms), 3ms));
    const auto second = step.add(launched(kernel(1ms), 3ms));
    const Timeline timeline = simulate(step);
    CHECK(work_of(timeline, first) == Window{3ms, 4ms});
    CHECK(work_of(timeline, second) == Window{6ms, 7ms});
  }
}

TEST_CASE("R19: a host-bound backward launches its all-reduces by the host's clock",
          "[sim][simulate]") {
  // 4 ms to launch each kernel of 1 ms, 1 ms to run the hook, 1 ms to issue the all-reduce of 2 ms.
  // Layer i is enqueued at 6 i + 4, its kernel ends at 6 i + 5, its all-reduce is in at 6 i + 6.
  Script step;
  std::vector<std::uint32_t> kernels, reduces;
  for (int layer = 0; layer < 4; ++layer) {
    kernels.push_back(step.add(launched(kernel(1ms), 4ms)));
    step.add(host(1ms));
    reduces.push_back(step.add(launched(collective(2ms), 1ms), {kernels.back()}));
  }
  const Timeline timeline = simulate(step);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const Duration begin = static_cast<int>(layer) * Duration{6ms};
    CHECK(work_of(timeline, kernels[layer]) == Window{begin + 4ms, begin + 5ms});
    CHECK(work_of(timeline, reduces[layer]) == Window{begin + 6ms, begin + 8ms});
  }
}

TEST_CASE("a kernel of several launches begins with the first", "[sim][simulate]") {
  // Four launches in 40 us: the first is in at 10. 100 us of work keep the device busy until 110.
  Script step;
  const auto task = step.add(launched(kernel(100us), 40us, 4, 25us));
  CHECK(work_of(simulate(step), task) == Window{10us, 110us});
}

TEST_CASE("a starved kernel ends its last share after the last launch", "[sim][simulate]") {
  // 20 us of work are done at 30, but the fourth launch is in at 40 and brings another 5 us.
  Script step;
  const auto starved = step.add(launched(kernel(20us), 40us, 4, 5us));
  const auto next = step.add(launched(kernel(10us), 1us));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, starved) == Window{10us, 45us});
  CHECK(work_of(timeline, next) == Window{45us, 55us});
  CHECK(enqueueing_of(timeline, next) == Window{40us, 41us});
}

TEST_CASE("a run of kernels of no length ends with its last launch", "[sim][simulate]") {
  Script step;
  const auto empty = step.add(launched(kernel(0us), 40us, 4));
  const auto next = step.add(kernel(10us));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, empty) == Window{10us, 40us});
  CHECK(work_of(timeline, next) == Window{40us, 50us});
}

TEST_CASE("the host stands still before a task that makes it wait", "[sim][simulate]") {
  Script step;
  const auto slow = step.add(kernel(10ms));
  const auto held = step.add(blocking(host(1ms)), {slow});
  const auto next = step.add(launched(kernel(4ms), 2ms));
  const Timeline timeline = simulate(step);
  CHECK(enqueueing_of(timeline, held) == Window{10ms, 11ms});
  CHECK(enqueueing_of(timeline, next) == Window{11ms, 13ms});
  CHECK(work_of(timeline, next) == Window{13ms, 17ms});
}

TEST_CASE("work of the host's own does not begin before what it waits for", "[sim][simulate]") {
  // Also without being told to stand still: the host is a stream like the others.
  Script step;
  const auto slow = step.add(collective(10ms));
  const auto hook = step.add(host(1ms), {slow});
  const auto own = step.add(host_kernel(2ms), {slow});
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, hook) == Window{10ms, 11ms});
  CHECK(work_of(timeline, own) == Window{11ms, 13ms});
}

TEST_CASE("a synchronous device computes on the host's thread", "[sim][simulate]") {
  // The host cannot issue the all-reduce before its kernel has ended, nor run the next one
  // meanwhile; issuing takes it 1 ms. Waiting for the all-reduce holds the host.
  Script step;
  const auto first = step.add(launched(host_kernel(10ms), 1ms));
  const auto sent = step.add(launched(collective(20ms), 1ms), {first});
  const auto second = step.add(host_kernel(5ms));
  PricedTask stand = blocking(host(0ms));
  const auto held = step.add(stand, {sent});
  const auto last = step.add(host_kernel(2ms));
  const Timeline timeline = simulate(step);
  CHECK(enqueueing_of(timeline, first) == Window{0ms, 1ms});
  CHECK(work_of(timeline, first) == Window{1ms, 11ms});
  CHECK(enqueueing_of(timeline, sent) == Window{11ms, 12ms});
  CHECK(work_of(timeline, sent) == Window{12ms, 32ms});
  CHECK(work_of(timeline, second) == Window{12ms, 17ms});
  CHECK(enqueueing_of(timeline, held) == Window{32ms, 32ms});
  CHECK(work_of(timeline, last) == Window{32ms, 34ms});
  CHECK(length(timeline) == 34ms);
}

TEST_CASE("work on the host and on the device take turns", "[sim][simulate]") {
  // What the host computes itself from 1 ms on waits for the kernel before it, and holds up the
  // next.
  Script step;
  const auto device = step.add(kernel(10ms));
  const auto own = step.add(launched(host_kernel(3ms), 1ms));
  const auto next = step.add(kernel(4ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, device) == Window{0ms, 10ms});
  CHECK(work_of(timeline, own) == Window{10ms, 13ms});
  CHECK(work_of(timeline, next) == Window{13ms, 17ms});
}

TEST_CASE("tasks of no length keep their place", "[sim][simulate]") {
  Script step;
  const auto slow = step.add(kernel(10ms));
  const auto nothing = step.add(kernel(0ms));
  const auto sent = step.add(collective(0ms), {nothing});
  const auto again = step.add(collective(0ms));
  const auto held = step.add(wait(), {again});
  const auto last = step.add(kernel(5ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, slow) == Window{0ms, 10ms});
  for (const auto task : {nothing, sent, again, held})
    CHECK(work_of(timeline, task) == Window{10ms, 10ms});
  CHECK(work_of(timeline, last) == Window{10ms, 15ms});
}

TEST_CASE("the step ends when the host does, if that is last", "[sim][simulate]") {
  Script step;
  step.add(kernel(1ms));
  const auto last = step.add(host(5ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, last) == Window{0ms, 5ms});
  CHECK(length(timeline) == 5ms);
}

TEST_CASE("a step without tasks takes no time", "[sim][simulate]") {
  const Timeline timeline = simulate(Script{});
  CHECK(length(timeline) == 0ms);
  REQUIRE(timeline.ranks.size() == 1);
  CHECK(timeline.ranks[0].empty());
}

TEST_CASE("what could never run is refused", "[sim][simulate]") {
  SECTION("no rank") {
    CHECK_THROWS_AS(ddpsim::simulate(program::Job{}, JobCosts{}), std::invalid_argument);
  }
  SECTION("a task that waits for itself") {
    Script step;
    step.add(kernel(1ms), {0});
    CHECK_THROWS_WITH(simulate(step), Catch::Contains("waits for a later one"));
  }
  SECTION("a task that waits for a later one") {
    Script step;
    step.add(kernel(1ms), {1});
    step.add(collective(1ms));
    CHECK_THROWS_WITH(simulate(step), Catch::Contains("waits for a later one"));
  }
}

TEST_CASE("what is only measured is refused", "[sim][simulate]") {
  Script step;
  step.add(kernel(1ms));
  ScriptedJob rounds(std::span(&step, 1)), beside(std::span(&step, 1));
  rounds.job.programs.front().rounds = 2;
  beside.job.beside.emplace();
  CHECK_THROWS_WITH(ddpsim::simulate(rounds.job, rounds.costs),
                    Catch::Contains("is measured, not simulated"));
  CHECK_THROWS_WITH(ddpsim::simulate(beside.job, beside.costs),
                    Catch::Contains("is measured, not simulated"));
}

TEST_CASE("a collective that is handed over is taken up later", "[sim][simulate]") {
  // Enqueued at 1 and 2 ms. The second is taken up 3 ms later: just when the first has ended.
  Script step;
  PricedTask task = launched(collective(4ms), 1ms);
  const auto own = step.add(task);
  task.take_up = 3ms;
  const auto over = step.add(task);
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, own) == Window{1ms, 5ms});
  CHECK(work_of(timeline, over) == Window{5ms, 9ms});
  step.costs.works[over].take_up = 6ms;
  CHECK(work_of(simulate(step), over) == Window{8ms, 12ms});
}

TEST_CASE("what runs aside takes the device from kernels, and nothing is lost", "[sim][simulate]") {
  // A comm hook's kernel, ready when the collective ends at 4, runs to 7; the kernel that began at
  // 0 stands still meanwhile and ends at 13 instead of 10.
  Script step;
  const auto sent = step.add(collective(4ms));
  PricedTask cast = kernel(3ms);
  cast.operation = Operation::cast;
  cast.stream = StepStream::aside;
  const auto back = step.add(cast, {sent});
  const auto computed = step.add(kernel(10ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, back) == Window{4ms, 7ms});
  CHECK(work_of(timeline, computed) == Window{0ms, 13ms});
}

TEST_CASE("kernels of the communicating thread hold up the next collective", "[sim][simulate]") {
  Script step;
  const auto first = step.add(collective(4ms));
  PricedTask cast = kernel(3ms);
  cast.operation = Operation::cast;
  cast.stream = StepStream::communication;
  const auto back = step.add(cast, {first});
  const auto second = step.add(collective(5ms));
  const auto computed = step.add(host_kernel(6ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, back) == Window{4ms, 7ms});
  CHECK(work_of(timeline, second) == Window{7ms, 12ms});
  CHECK(work_of(timeline, computed) == Window{0ms, 9ms});
}

TEST_CASE("work aside waits for nobody's kernels and its waits are kept", "[sim][simulate]") {
  // The host waits for what runs aside before it launches the next kernel.
  Script step;
  const auto sent = step.add(collective(4ms));
  PricedTask cast = kernel(3ms);
  cast.operation = Operation::cast;
  cast.stream = StepStream::aside;
  const auto back = step.add(cast, {sent});
  PricedTask stop = host(0ms);
  stop.operation = Operation::synchronize;
  step.add(blocking(stop), {back});
  const auto next = step.add(kernel(2ms));
  CHECK(work_of(simulate(step), next) == Window{7ms, 9ms});
}
