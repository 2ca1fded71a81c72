#include "sim/tune/bucket_caps.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "tests/sim/tune/random_partitions.hpp"

namespace ddpsim {
namespace {

using fixtures::Dice;
using fixtures::small_costs;
using fixtures::total;

const CapRange& range_of(const std::vector<CapRange>& ranges, Bytes cap) {
  return *std::find_if(ranges.begin(), ranges.end(),
                       [&](const CapRange& range) { return cap <= range.high; });
}

}  // namespace

TEST_CASE("the caps found make the buckets of every cap there is", "[sim][bucket_caps]") {
  std::size_t several = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Dice dice(seed);
    const StepCosts costs = small_costs(dice, dice.one_in(2));
    Training training;
    if (dice.one_in(3)) training.bucket_rule = BucketRule::before_overflow;
    training.find_unused_parameters = dice.one_in(4);
    training.static_graph = dice.one_in(3);
    std::optional<Bytes> first;
    if (dice.one_in(2)) first = Bytes{dice.between(1, 100)};
    const std::vector<CapRange> ranges = all_caps(costs, training, first);
    CAPTURE(seed, costs.gradients.size());
    REQUIRE(ranges.front().low == Bytes{1});
    REQUIRE(ranges.back().high == no_cap);
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      REQUIRE(ranges[i].low == ranges[i - 1].high + Bytes{1});
      REQUIRE(ranges[i].buckets != ranges[i - 1].buckets);
    }
    for (std::int64_t cap = 1; cap <= total(costs).count + 2; ++cap)
      REQUIRE(range_of(ranges, {cap}).buckets == buckets_of(costs, training, first, {cap}));
    several += ranges.size() > 3 ? 1 : 0;
  }
  CHECK(several > 1500);
}

TEST_CASE("the first caps found make the first buckets of every first cap", "[sim][bucket_caps]") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Dice dice(seed);
    const StepCosts costs = small_costs(dice, dice.one_in(2));
    Training training;
    if (dice.one_in(3)) training.bucket_rule = BucketRule::before_overflow;
    training.find_unused_parameters = dice.one_in(4);
    const std::vector<CapRange> ranges = all_first_caps(costs, training);
    const Bytes largest = total(costs);
    for (std::int64_t first = 1; first <= largest.count + 2; ++first) {
      const CapRange& range = range_of(ranges, {first});
      CAPTURE(seed, first);
      // Caps of one range are alike beside any second cap.
      for (const std::int64_t cap : {std::int64_t{1}, largest.count / 3 + 1, largest.count + 1})
        REQUIRE(buckets_of(costs, training, Bytes{first}, {cap}) ==
                buckets_of(costs, training, range.low, {cap}));
    }
  }
}

TEST_CASE("the quick form makes the buckets of every cap there is", "[sim][bucket_caps]") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Dice dice(seed);
    const StepCosts costs = small_costs(dice, true);
    REQUIRE(all_contiguous(costs, {}));
    std::vector<Bytes> sizes;
    for (const int index : costs.arrival)
      sizes.push_back(costs.gradients[static_cast<std::size_t>(index)].size);
    const ContiguousCaps caps(sizes);
    std::vector<int> ends;
    for (std::int64_t cap = 1, same = 0; cap <= total(costs).count + 2; ++cap) {
      const std::vector<int> before = ends;
      ends.clear();
      const Bytes largest = caps.append(0, {cap}, ends);
      CAPTURE(seed, cap);
      REQUIRE(fixtures::buckets_of(costs, ends) == buckets_of(costs, {}, std::nullopt, {cap}));
      if (cap <= same) REQUIRE(ends == before);
      if (cap > same && cap > 1) REQUIRE(ends != before);
      REQUIRE(largest.count >= cap);
      same = largest.count;
    }
  }
}

TEST_CASE("types that differ, sparse gradients and other rules are not contiguous",
          "[sim][bucket_caps]") {
  Dice dice(1);
  StepCosts costs = small_costs(dice, true);
  Training training;
  CHECK(all_contiguous(costs, training));
  training.bucket_rule = BucketRule::before_overflow;
  CHECK_FALSE(all_contiguous(costs, training));
  training = {};
  training.find_unused_parameters = true;
  CHECK_FALSE(all_contiguous(costs, training));
  training = {};
  costs.gradients.front().sparse = true;
  CHECK_FALSE(all_contiguous(costs, training));
}

}  // namespace ddpsim
