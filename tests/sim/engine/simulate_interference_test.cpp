// Kernels and collectives that slow each other, and when they do not.
#include <catch2/catch.hpp>

#include "sim/engine/simulate.hpp"
#include "tests/sim/predict/fixtures.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

/// Arithmetic 1.25 times slower, memory-bound kernels and the collective twice.
constexpr Interference beside{1.25F, 2, 2};

}  // namespace

TEST_CASE("a kernel and a collective slow each other while both run", "[sim][simulate]") {
  // The collective's 4 ms take 8. By then the kernel has done 8 / 1.25 = 6.4 of its 10 ms; the
  // other 3.6 run alone.
  Script step;
  const auto sent = step.add(collective(4ms, beside));
  const auto computing = step.add(kernel(10ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, sent) == Window{0ms, 8ms});
  CHECK(work_of(timeline, computing) == Window{0ms, 11'600us});
}

TEST_CASE("rates change each time something begins or ends beside a kernel", "[sim][simulate]") {
  // A memory-bound kernel of 20 ms; collectives of 2 ms from 0 and of 3 ms from 10.
  //     0 ..  4   both at half speed: the first collective ends, 2 ms of the kernel are done
  //     4 .. 10   alone: 8 done
  //    10 .. 16   both at half speed: the second collective ends, 11 done
  //    16 .. 25   the other 9
  // Then an arithmetic kernel of 5 ms, and from 27 a collective of 4 ms:
  //    25 .. 27      alone: 2 done
  //    27 .. 30.75   the other 3, 1.25 times slower; the collective does 3.75 / 2 = 1.875
  //    30.75 .. 32.875   the collective's other 2.125, alone
  Script step;
  const auto first = step.add(collective(2ms, beside));
  const auto memory = step.add(kernel(20ms, 1));
  const auto arithmetic = step.add(kernel(5ms));
  step.add(host(10ms));
  const auto second = step.add(collective(3ms, beside));
  step.add(host(17ms));
  const auto third = step.add(collective(4ms, beside));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, first) == Window{0ms, 4ms});
  CHECK(work_of(timeline, second) == Window{10ms, 16ms});
  CHECK(work_of(timeline, memory) == Window{0ms, 25ms});
  CHECK(work_of(timeline, arithmetic) == Window{25ms, 30'750us});
  CHECK(work_of(timeline, third) == Window{27ms, 32'875us});
}

TEST_CASE("a collective speeds up in the gaps between kernels", "[sim][simulate]") {
  // Kernels of 4 ms, at 0 and, launched late, at 7; each takes 5 beside the collective of 8 ms.
  //     0 .. 5    2.5 of it are done        5 .. 7    alone: 4.5
  //     7 .. 12   another 2.5: 7           12 .. 13   alone: the last
  Script step;
  const auto sent = step.add(collective(8ms, beside));
  const auto first = step.add(kernel(4ms));
  step.add(host(7ms));
  const auto second = step.add(kernel(4ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, first) == Window{0ms, 5ms});
  CHECK(work_of(timeline, second) == Window{7ms, 12ms});
  CHECK(work_of(timeline, sent) == Window{0ms, 13ms});
}

TEST_CASE("the worse of lost SMs and lost memory bandwidth slows a kernel", "[sim][simulate]") {
  // 8 ms beside a long collective. Memory-bound to one quarter: 1 + 1/4 (2 - 1) = 1.25 as well; to
  // one half: 1.5; wholly: 2. Arithmetic alone: 1.25.
  const auto took = [](float memory_fraction) {
    Script step;
    step.add(collective(100ms, beside));
    const auto task = step.add(kernel(8ms, memory_fraction));
    return work_of(simulate(step), task);
  };
  CHECK(took(0) == Window{0ms, 10ms});
  CHECK(took(0.25F) == Window{0ms, 10ms});
  CHECK(took(0.5F) == Window{0ms, 12ms});
  CHECK(took(1) == Window{0ms, 16ms});
}

TEST_CASE("work on the host's own thread slows and is slowed alike", "[sim][simulate]") {
  Script step;
  const auto sent = step.add(collective(4ms, beside));
  const auto computing = step.add(host_kernel(10ms));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, sent) == Window{0ms, 8ms});
  CHECK(work_of(timeline, computing) == Window{0ms, 11'600us});
}

TEST_CASE("the host's other time slows nothing", "[sim][simulate]") {
  Script step;
  const auto sent = step.add(collective(4ms, beside));
  step.add(host(10ms));
  CHECK(work_of(simulate(step), sent) == Window{0ms, 4ms});
}

TEST_CASE("what only touches at an instant is not slowed", "[sim][simulate]") {
  // Kernel, its all-reduce, a kernel that waits for it: one after the other. Another all-reduce is
  // issued at 14, when that second kernel begins, but is of no length.
  Script step;
  const auto first = step.add(kernel(10ms, 1));
  const auto sent = step.add(collective(4ms, beside), {first});
  const auto empty = step.add(collective(0ms, beside));
  const auto second = step.add(kernel(5ms, 1), {sent});
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, first) == Window{0ms, 10ms});
  CHECK(work_of(timeline, sent) == Window{10ms, 14ms});
  CHECK(work_of(timeline, empty) == Window{14ms, 14ms});
  CHECK(work_of(timeline, second) == Window{14ms, 19ms});
}

TEST_CASE("a run of kernels presses on a collective until its last launch has run",
          "[sim][simulate]") {
  // The run begins with its first launch at 10 us. Its 20 us are done at 30, but the launch at 40
  // brings another 5: it ends at 45. The collective of 30 us does 10 until 10 us, half of 35 until
  // 45, and the last 2.5 alone.
  constexpr Interference slow_collective{1, 1, 2};
  Script step;
  const auto sent = step.add(collective(30us, slow_collective));
  const auto starved = step.add(launched(kernel(20us), 40us, 4, 5us));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, starved) == Window{10us, 45us});
  CHECK(work_of(timeline, sent) == Window{0us, 47'500ns});
}

TEST_CASE("a starved run is not made longer by a collective beside its gaps", "[sim][simulate]") {
  // Three times slower beside the collective: 20 us take 60 from 10 to 70. With the host done at 40
  // and 5 us after that, nothing more is lost.  Twice slower, of 10 us: done at 30, and still 45.
  Script slow, short_run;
  slow.add(collective(1ms, {3, 3, 1}));
  short_run.add(collective(1ms, {2, 2, 1}));
  const auto first = slow.add(launched(kernel(20us), 40us, 4, 5us));
  const auto second = short_run.add(launched(kernel(10us), 40us, 4, 5us));
  CHECK(work_of(simulate(slow), first) == Window{10us, 70us});
  CHECK(work_of(simulate(short_run), second) == Window{10us, 45us});
}

TEST_CASE("rounding a rate never loses more than a picosecond at a change", "[sim][simulate]") {
  // Factors of 3: a kernel of 10 ps beside a collective of 3 ps that takes 9. By then 9 / 3 = 3 ps
  // of the kernel are done; the other 7 end at 16.
  Script step;
  const auto sent = step.add(collective(Duration{3}, {3, 3, 3}));
  const auto computing = step.add(kernel(Duration{10}));
  const Timeline timeline = simulate(step);
  CHECK(work_of(timeline, sent) == Window{Duration{0}, Duration{9}});
  CHECK(work_of(timeline, computing) == Window{Duration{0}, Duration{16}});
}
