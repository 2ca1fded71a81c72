// Several ranks: a collective is one operation of all of them.
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/engine/simulate.hpp"
#include "tests/sim/predict/fixtures.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

/// A kernel of `compute`, its all-reduce of 20 ms, and a kernel of 5 ms that waits for it.
Script reduce_after(Duration compute) {
  Script step;
  const auto gradient = step.add(kernel(compute));
  const auto sent = step.add(collective(20ms), {gradient});
  step.add(wait(), {sent});
  step.add(kernel(5ms));
  return step;
}

constexpr std::uint32_t gradient = 0, sent = 1, update = 3;  // tasks of reduce_after

}  // namespace

TEST_CASE("R18: a delayed rank shifts the ends of all alike", "[sim][simulate]") {
  const Duration delay = GENERATE(0ms, 7ms, 25ms);
  const std::vector<Script> ranks{reduce_after(10ms), reduce_after(10ms + delay),
                                  reduce_after(10ms)};
  const Timeline timeline = simulate(ranks);
  CHECK(work_of(timeline, gradient, 0) == Window{0ms, 10ms});
  CHECK(work_of(timeline, gradient, 1) == Window{0ms, 10ms + delay});
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(work_of(timeline, sent, rank) == Window{10ms + delay, 30ms + delay});
    CHECK(work_of(timeline, update, rank) == Window{30ms + delay, 35ms + delay});
  }
  CHECK(length(timeline) == 35ms + delay);
}

TEST_CASE("ranks that do the same may be given once", "[sim][simulate]") {
  const Script one = reduce_after(10ms);
  const std::vector<Script> four(4, one);
  const Timeline alone = simulate(one), together = simulate(four);
  REQUIRE(together.ranks.size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank)
    CHECK(same(Timeline{{together.ranks[rank]}, together.end}, alone));
}

TEST_CASE("a rank late for one collective is late for what follows from it", "[sim][simulate]") {
  // Rank 0 issues both at once. Rank 1 arrives at the first at 10, computes 3 ms on its result and
  // only then arrives at the second.
  Script eager, late;
  const auto first = eager.add(collective(2ms));
  const auto second = eager.add(collective(2ms));
  const auto busy = late.add(kernel(10ms));
  const auto late_first = late.add(collective(2ms), {busy});
  const auto between = late.add(kernel(3ms), {late_first});
  const auto late_second = late.add(collective(2ms), {between});
  const Timeline timeline = simulate(std::vector<Script>{eager, late});
  CHECK(work_of(timeline, first, 0) == Window{10ms, 12ms});
  CHECK(work_of(timeline, late_first, 1) == Window{10ms, 12ms});
  CHECK(work_of(timeline, between, 1) == Window{12ms, 15ms});
  CHECK(work_of(timeline, second, 0) == Window{15ms, 17ms});
  CHECK(work_of(timeline, late_second, 1) == Window{15ms, 17ms});
}

TEST_CASE("the rank that prices a collective highest decides its length", "[sim][simulate]") {
  Script cheap, dear;
  cheap.add(collective(3ms));
  dear.add(collective(8ms));
  CHECK(work_of(simulate(std::vector<Script>{cheap, dear}), 0, 0) == Window{0ms, 8ms});
  CHECK(work_of(simulate(std::vector<Script>{dear, cheap}), 0, 1) == Window{0ms, 8ms});
}

TEST_CASE("a rank that waits for its peers holds SMs but moves no bytes", "[sim][simulate]") {
  // Arithmetic 1.25 times slower beside the collective, memory-bound kernels twice, the collective
  // itself twice. Rank 0 arrives at once and spins until 10: its memory-bound kernel of 12 ms loses
  // SMs only and does 10 / 1.25 = 8 ms. Then bytes move: the other 4 ms take 8, until 18, by when
  // the collective has done 4 of its 5 ms; alone it ends at 19. Rank 1 computed before it arrived.
  const Interference beside{1.25F, 2, 2};
  Script spinning, late;
  const auto spun = spinning.add(collective(5ms, beside));
  const auto slowed = spinning.add(kernel(12ms, 1));
  const auto alone = late.add(kernel(10ms, 1));
  const auto arrived = late.add(collective(5ms, beside), {alone});
  const Timeline timeline = simulate(std::vector<Script>{spinning, late});
  CHECK(work_of(timeline, alone, 1) == Window{0ms, 10ms});
  CHECK(work_of(timeline, slowed, 0) == Window{0ms, 18ms});
  CHECK(work_of(timeline, spun, 0) == Window{10ms, 19ms});
  CHECK(work_of(timeline, arrived, 1) == Window{10ms, 19ms});
}

TEST_CASE("a kernel on any rank slows the collective for all", "[sim][simulate]") {
  // Rank 1 computes 3 ms beside it: 1.5 ms of the 4 are done, 2.5 follow alone.
  const Interference beside{1, 1, 2};
  Script idle, busy;
  idle.add(collective(4ms, beside));
  busy.add(collective(4ms, beside));
  busy.add(kernel(3ms));
  const Timeline timeline = simulate(std::vector<Script>{idle, busy});
  CHECK(work_of(timeline, 0, 0) == Window{0ms, Duration{5'500'000'000}});
}

TEST_CASE("the rank that suffers most slows the collective for all", "[sim][simulate]") {
  // Three times slower on one of them, for the 6 ms both compute: 2 of 4 ms done, 2 follow alone.
  Script light, heavy;
  light.add(collective(4ms, {1, 1, 1.5F}));
  heavy.add(collective(4ms, {1, 1, 3}));
  for (Script* each : {&light, &heavy}) each->add(kernel(6ms));
  const auto ends = [](const Script& a, const Script& b) {
    return work_of(simulate(std::vector<Script>{a, b}), 0);
  };
  CHECK(ends(light, heavy) == Window{0ms, 8ms});
  CHECK(ends(heavy, light) == Window{0ms, 8ms});
}

TEST_CASE("ranks that disagree about their collectives are refused", "[sim][simulate]") {
  Script none, one, two;
  none.add(kernel(1ms));
  one.add(collective(1ms));
  two.add(collective(1ms));
  two.add(collective(1ms));
  const auto run = [](const Script& a, const Script& b) {
    return simulate(std::vector<Script>{a, b});
  };
  CHECK_THROWS_WITH(run(one, none), Catch::Contains("wait for each other for ever"));
  CHECK_THROWS_AS(run(none, one), std::invalid_argument);
  CHECK_THROWS_AS(run(one, two), std::invalid_argument);
  CHECK_NOTHROW(run(two, two));
}
