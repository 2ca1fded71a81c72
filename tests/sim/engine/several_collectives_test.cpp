// More than one collective under way: of one communicator where it has several threads, and of
// several communicators.
#include <catch2/catch.hpp>

#include "sim/engine/flights.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/sim/predict/fixtures.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

/// All-reduces of `work`, issued at once.
Script issued_together(int count, Duration work) {
  Script step;
  for (int i = 0; i < count; ++i) step.add(collective(work));
  return step;
}

Duration start(const Timeline& timeline, std::size_t task) {
  return timeline.ranks[0][task].start - Instant{};
}
Duration end(const Timeline& timeline, std::size_t task) {
  return timeline.ranks[0][task].end - Instant{};
}

}  // namespace

TEST_CASE("R37: of three equal buckets, the third starts when one of the first two ends",
          "[sim][rules]") {
  Script step = issued_together(3, 10ms);
  step.schedule.collectives_at_once = 2;
  const Timeline two = simulate(step);
  CHECK(start(two, 0) == 0ms);
  CHECK(start(two, 1) == 0ms);
  CHECK(end(two, 0) == 20ms);  // they share the link
  CHECK(end(two, 1) == 20ms);
  CHECK(start(two, 2) == 20ms);
  CHECK(end(two, 2) == 30ms);
  step.schedule.collectives_at_once = 1;
  const Timeline one = simulate(step);
  CHECK(start(one, 1) == 10ms);
  CHECK(start(one, 2) == 20ms);
  CHECK(end(one, 2) == 30ms);
}

TEST_CASE("R37: a short collective overtakes a long one, in whose stead the next begins",
          "[sim][rules]") {
  Script step;
  step.schedule.collectives_at_once = 2;
  for (const Duration work : {Duration{30ms}, Duration{5ms}, Duration{5ms}})
    step.add(collective(work));
  const Timeline timeline = simulate(step);
  CHECK(end(timeline, 1) == 10ms);
  CHECK(start(timeline, 2) == 10ms);
  CHECK(end(timeline, 2) == 20ms);
  CHECK(end(timeline, 0) == 40ms);  // the link is never idle
}

TEST_CASE("R37: what is latency is not shared", "[sim][rules]") {
  Script step;
  step.schedule.collectives_at_once = 2;
  PricedTask small = collective(4ms);
  small.latency = 4ms;
  for (int i = 0; i < 4; ++i) step.add(small);
  CHECK(length(simulate(step)) == 8ms);
}

TEST_CASE("R37: collectives together fill the link, and move no more than it lets through",
          "[sim][rules]") {
  Script step;
  step.schedule.collectives_at_once = 2;
  PricedTask each = collective(10ms);
  each.latency = 2ms;
  for (int i = 0; i < 4; ++i) step.add(each);
  // 8 ms of transfer each: two at a time take 16.
  CHECK(std::chrono::abs(length(simulate(step)) - 32ms) < 10ns);
  // 4 ms of transfer each: there is room for both.
  Script light;
  light.schedule.collectives_at_once = 2;
  each.latency = 6ms;
  for (int i = 0; i < 4; ++i) light.add(each);
  CHECK(length(simulate(light)) == 20ms);
}

TEST_CASE("R17: collectives of two groups overlap, of one group they do not", "[sim][rules]") {
  Script step = issued_together(2, 10ms);
  CHECK(start(simulate(step), 1) == 10ms);
  step.work_of(1).communicator = 1;
  const Timeline two = simulate(step);
  CHECK(start(two, 1) == 0ms);
  CHECK(end(two, 0) == 20ms);
  CHECK(end(two, 1) == 20ms);
}

TEST_CASE("R17: a group that waits for its slowest rank holds up no other", "[sim][rules]") {
  // The slow rank has what the first group needs at 7 ms; the second group's collective stands
  // behind that in the schedule, and has ended by then.
  const auto rank = [](Duration late) {
    Script step;
    const std::uint32_t ready = step.add(kernel(late));
    step.add(collective(1ms), {ready});
    PricedTask second = collective(1ms);
    second.communicator = 1;
    step.add(second);
    return step;
  };
  const std::array ranks{rank(1us), rank(7ms)};
  const Timeline timeline = simulate(ranks);
  CHECK(start(timeline, 1) == 7ms);
  CHECK(start(timeline, 2) == 0ms);
  CHECK(end(timeline, 2) == 1ms);
  // Of one group, it waits for the one before.
  std::array one = ranks;
  for (Script& each : one) each.work_of(2).communicator = 0;
  CHECK(start(simulate(one), 2) == 8ms);
}

TEST_CASE("R37: a message that is all latency does not slow a transfer", "[sim][rules]") {
  Script step;
  step.schedule.collectives_at_once = 2;
  step.add(collective(10ms));
  PricedTask small = collective(4ms);
  small.latency = 4ms;
  step.add(small);
  const Timeline timeline = simulate(step);
  CHECK(end(timeline, 0) == 10ms);
  CHECK(end(timeline, 1) == 4ms);
}

TEST_CASE("R17: what a comm hook computes behind its own group's collective is not lost",
          "[sim][rules]") {
  Script step;
  PricedTask first = collective(2ms);
  first.communicator = 1;
  const std::uint32_t sent = step.add(first);
  PricedTask aside = kernel(1ms);
  aside.stream = StepStream::aside;
  step.add(aside, {sent});
  CHECK(length(simulate(step)) == 3ms);
}

TEST_CASE("copies to and from a device run beside kernels, one in each direction",
          "[sim][simulate]") {
  Script step;
  PricedTask down = kernel(3ms), up = kernel(2ms);
  down.stream = StepStream::to_host;
  up.stream = StepStream::to_device;
  step.add(down);
  step.add(up);
  step.add(kernel(10ms));
  step.add(down);
  const Timeline timeline = simulate(step);
  CHECK(end(timeline, 1) == 2ms);
  CHECK(end(timeline, 2) == 10ms);
  CHECK(start(timeline, 3) == 3ms);
  CHECK(end(timeline, 3) == 6ms);
}
TEST_CASE("collectives that fill no link in common do not slow each other", "[sim][flights]") {
  const auto ends = [](FilledLinks one, FilledLinks other) {
    Flights flights(2);
    const std::uint32_t first = flights.add_meeting({0, 1}), second = flights.add_meeting({0, 1});
    WorkCost costs[2];
    costs[0].work = costs[1].work = std::chrono::milliseconds{1};
    costs[0].links = one;
    costs[1].links = other;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      flights.arrive(first, 0, {rank, 0}, costs[0], Instant{});
      flights.arrive(second, 0, {rank, 1}, costs[1], Instant{});
    }
    flights.settle(Instant{});
    return in_ms(flights.next().time_since_epoch());
  };
  CHECK(ends(FilledLinks::inside, FilledLinks::between) == Approx(1));
  CHECK(ends(FilledLinks::inside, FilledLinks::inside) == Approx(2));
  CHECK(ends(FilledLinks::between, FilledLinks::all) == Approx(2));
}
