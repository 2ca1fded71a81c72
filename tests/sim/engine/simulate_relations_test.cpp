// How timelines of related schedules are related. DDPSIM_RELATIONS=100000 tries that many schedules
// of each kind in place of 200; DDPSIM_SEED=7 begins with another seed than 1.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <catch2/catch.hpp>

#include "sim/engine/simulate.hpp"
#include "tests/sim/engine/random_schedules.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;

namespace {

std::uint64_t from_environment(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

enum class Shared { nothing, everything };

/// Calls `relate(scripts, dice)` on schedules of many seeds. Where ranks share something, kernels
/// slow collectives and collectives each other, and rounding depends on the lengths of works.
template <typename Relate>
void for_related_schedules(Shared shared, Relate&& relate) {
  const std::uint64_t first = from_environment("DDPSIM_SEED", 1);
  const std::uint64_t count = from_environment("DDPSIM_RELATIONS", 200);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    Shape shape;
    shape.ranks = dice.between(1, 5);
    shape.synchronous = dice.one_in(3);
    shape.handover = dice.one_in(3);
    if (shared == Shared::everything) {
      shape.interference = dice.one_in(2);
      shape.communicators = dice.between(1, 3);
      shape.collectives_at_once = dice.between(1, 2);
    }
    relate(random_schedules(dice, shape), dice);
  }
}

/// The same work where every time is `factor` times as long.
Script times(Script script, int factor) {
  for (WorkCost& cost : script.costs.works) {
    for (Duration* time : {&cost.host, &cost.first_launch, &cost.work, &cost.last_launch,
                           &cost.latency, &cost.take_up})
      *time *= factor;
    cost.launch_rate /= static_cast<float>(factor);
    cost.beside.per_launch *= static_cast<float>(factor);
  }
  return script;
}

std::vector<Script> times(std::vector<Script> scripts, int factor) {
  for (Script& script : scripts) script = times(std::move(script), factor);
  return scripts;
}

/// Calls `check(a, b)` with every moment of one timeline and the same moment of the other.
template <typename Check>
void for_each_moment(const Timeline& one, const Timeline& other, Check&& check) {
  REQUIRE(one.ranks.size() == other.ranks.size());
  for (std::size_t r = 0; r < one.ranks.size(); ++r) {
    for (std::size_t i = 0; i < one.ranks[r].size(); ++i) {
      CAPTURE(r, i);
      const TaskTimes &a = one.ranks[r][i], &b = other.ranks[r].at(i);
      check(a.issued.time_since_epoch(), b.issued.time_since_epoch());
      check(a.enqueued.time_since_epoch(), b.enqueued.time_since_epoch());
      check(a.start.time_since_epoch(), b.start.time_since_epoch());
      check(a.end.time_since_epoch(), b.end.time_since_epoch());
    }
  }
}

}  // namespace

TEST_CASE("times that are all twice or a thousand times as long make such a timeline, to the tick",
          "[sim][simulate][relations]") {
  for_related_schedules(Shared::nothing, [](const std::vector<Script>& scripts, Dice&) {
    const Timeline once = simulate(scripts);
    for (const int factor : {2, 1000})
      for_each_moment(once, simulate(times(scripts, factor)),
                      [&](Duration a, Duration b) { REQUIRE(b == factor * a); });
  });
}

TEST_CASE("where work slows other work, a doubled timeline is as exact as rounding leaves it",
          "[sim][simulate][relations]") {
  // Rates that change round twice half a tick; against the slow solver, which rounds once, that
  // comes to 150 ticks at most (simulate_property_test.cpp), here of one timeline and half of it.
  for_related_schedules(Shared::everything, [](const std::vector<Script>& scripts, Dice&) {
    for_each_moment(simulate(scripts), simulate(times(scripts, 2)), [](Duration a, Duration b) {
      REQUIRE(std::abs((b - 2 * a).count()) <= 3 * 150);
    });
  });
}

TEST_CASE("ranks that change places change places in the timeline", "[sim][simulate][relations]") {
  for_related_schedules(Shared::everything, [](const std::vector<Script>& scripts, Dice& dice) {
    std::vector<std::size_t> order(scripts.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(dice.between(0, static_cast<int>(i) - 1))]);
    std::vector<Script> moved;
    for (const std::size_t rank : order) moved.push_back(scripts[rank]);
    const Timeline before = simulate(scripts);
    Timeline expected = before;
    for (std::size_t i = 0; i < order.size(); ++i) expected.ranks[i] = before.ranks[order[i]];
    REQUIRE(same(simulate(moved), expected));
  });
}

TEST_CASE("a rank that is given twice changes nothing", "[sim][simulate][relations]") {
  for_related_schedules(Shared::everything, [](std::vector<Script> scripts, Dice& dice) {
    const Timeline before = simulate(scripts);
    const auto rank =
        static_cast<std::size_t>(dice.between(0, static_cast<int>(scripts.size()) - 1));
    scripts.push_back(scripts[rank]);
    Timeline expected = before;
    expected.ranks.push_back(before.ranks[rank]);
    REQUIRE(same(simulate(scripts), expected));
  });
}

TEST_CASE("where nothing slows anything, longer work makes nothing earlier",
          "[sim][simulate][relations]") {
  for_related_schedules(Shared::nothing, [](const std::vector<Script>& scripts, Dice& dice) {
    std::vector<Script> longer = scripts;
    Script& script =
        longer[static_cast<std::size_t>(dice.between(0, static_cast<int>(longer.size()) - 1))];
    WorkCost& cost = script.costs.works[static_cast<std::size_t>(
        dice.between(0, static_cast<int>(script.costs.works.size()) - 1))];
    const Duration more = dice.time(30);
    (dice.one_in(2) ? cost.work : cost.host) += more;
    for_each_moment(simulate(scripts), simulate(longer),
                    [&](Duration a, Duration b) { REQUIRE(b >= a); });
  });
}
