#include "sim/tune/local_search.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/sim/tune/random_partitions.hpp"

namespace ddpsim {
namespace {

using fixtures::Dice;
using Ends = std::vector<int>;

bool anything(const Ends&) {
  return true;
}

/// Some borders, and the end.
Ends random_ends(Dice& dice, int count) {
  Ends ends;
  for (int end = 1; end < count; ++end)
    if (dice.one_in(3)) ends.push_back(end);
  ends.push_back(count);
  return ends;
}

/// Every partition that differs by one border: without it, with it elsewhere, or with one more.
std::vector<Ends> neighbours(const Ends& ends) {
  std::vector<Ends> all;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    all.push_back(ends);
    all.back().erase(all.back().begin() + static_cast<std::ptrdiff_t>(i));
    for (const int shift : {1, 2, 4, 8, 16})
      for (const int to : {ends[i] - shift, ends[i] + shift})
        if (to > (i == 0 ? 0 : ends[i - 1]) && to < ends[i + 1]) {
          all.push_back(ends);
          all.back()[i] = to;
        }
  }
  for (int border = 1; border < ends.back(); ++border)
    if (!std::binary_search(ends.begin(), ends.end(), border)) {
      all.push_back(ends);
      all.back().insert(std::lower_bound(all.back().begin(), all.back().end(), border), border);
    }
  return all;
}

}  // namespace

TEST_CASE("a local search ends where no border removed, moved or added shortens the step",
          "[sim][local_search]") {
  int several = 0, shorter = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 40, true);
    BucketSteps steps(model, {});
    const Ends start = random_ends(dice, steps.size());
    const Partition best = local_search(steps, {start}, Duration::zero(), 1'000'000, anything);
    CAPTURE(seed, start, best.ends);
    REQUIRE(steps.of(best.ends) == best.step);
    REQUIRE(best.step <= steps.of(start));
    for (const Ends& other : neighbours(best.ends)) {
      CAPTURE(other);
      const Duration step = steps.of(other);
      REQUIRE(step >= best.step);
      if (step == best.step) REQUIRE(other.size() >= best.ends.size());
    }
    several += best.ends.size() > 2 ? 1 : 0;
    shorter += best.step < steps.of(start) ? 1 : 0;
  }
  CHECK(several > 20);
  CHECK(shorter > 50);
}

TEST_CASE("a local search goes on from the shortest of its starts, to no more than its budget",
          "[sim][local_search]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 20, true);
    BucketSteps steps(model, {});
    std::vector<Ends> starts;
    Duration shortest = Duration::max();
    for (int i = 0; i < 5; ++i) {
      starts.push_back(random_ends(dice, steps.size()));
      shortest = std::min(shortest, steps.of(starts.back()));
    }
    std::uint64_t tried = 0;
    const auto counted = [&](const Ends&) { return ++tried > 0; };
    CAPTURE(seed);
    const Partition from_all = local_search(steps, starts, Duration::max(), 1000, counted);
    CHECK(from_all.step == shortest);  // nothing is left to gain
    CHECK(tried == 0);
    CHECK(local_search(steps, starts, Duration::zero(), 0, counted).step == shortest);
    CHECK(tried == 0);
    CHECK(local_search(steps, starts, Duration::zero(), 90, counted).step <= shortest);
    CHECK(tried <= 90);
    tried = 0;
    const Ends whole{steps.size()};
    local_search(steps, {whole}, Duration::zero(), 1, counted);
    CHECK(tried == (steps.size() > 1 ? 1U : 0U));
  }
}

TEST_CASE("a local search takes only what fits", "[sim][local_search]") {
  const auto of_three = [](const Ends& ends) {
    for (std::size_t i = 0; i < ends.size(); ++i)
      if (ends[i] - (i == 0 ? 0 : ends[i - 1]) > 3) return false;
    return true;
  };
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 20, true);
    BucketSteps steps(model, {});
    Ends start;
    for (int end = 1; end <= steps.size(); ++end) start.push_back(end);
    const Partition best = local_search(steps, {start}, Duration::zero(), 1'000'000, of_three);
    CHECK(of_three(best.ends));
    moved += best.ends != start ? 1 : 0;
  }
  CHECK(moved > 20);
}

}  // namespace ddpsim
