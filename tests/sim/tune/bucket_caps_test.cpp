#include "sim/tune/bucket_caps.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "tests/sim/tune/random_partitions.hpp"

namespace ddpsim {
namespace {

using fixtures::Dice;
using fixtures::small_model;
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
    const StepModel model = small_model(dice, dice.one_in(2));
    Training training;
    if (dice.one_in(3)) training.bucket_rule = BucketRule::before_overflow;
    training.find_unused_parameters = dice.one_in(4);
    training.static_graph = dice.one_in(3);
    std::optional<Bytes> first;
    if (dice.one_in(2)) first = Bytes{dice.between(1, 100)};
    const std::vector<CapRange> ranges = all_caps(model.works, training, first);
    CAPTURE(seed, model.works.gradients.size());
    REQUIRE(ranges.front().low == Bytes{1});
    REQUIRE(ranges.back().high == no_cap);
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      REQUIRE(ranges[i].low == ranges[i - 1].high + Bytes{1});
      REQUIRE(ranges[i].buckets != ranges[i - 1].buckets);
    }
    for (std::int64_t cap = 1; cap <= total(model).count + 2; ++cap)
      REQUIRE(range_of(ranges, {cap}).buckets == buckets_of(model.works, training, first, {cap}));
    several += ranges.size() > 3 ? 1 : 0;
  }
  CHECK(several > 1500);
}

TEST_CASE("the first caps found make the first buckets of every first cap", "[sim][bucket_caps]") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Dice dice(seed);
    const StepModel model = small_model(dice, dice.one_in(2));
    Training training;
    if (dice.one_in(3)) training.bucket_rule = BucketRule::before_overflow;
    training.find_unused_parameters = dice.one_in(4);
    const std::vector<CapRange> ranges = all_first_caps(model.works, training);
    const Bytes largest = total(model);
    for (std::int64_t first = 1; first <= largest.count + 2; ++first) {
      const CapRange& range = range_of(ranges, {first});
      CAPTURE(seed, first);
      // Caps of one range are alike beside any second cap.
      for (const std::int64_t cap : {std::int64_t{1}, largest.count / 3 + 1, largest.count + 1})
        REQUIRE(buckets_of(model.works, training, Bytes{first}, {cap}) ==
                buckets_of(model.works, training, range.low, {cap}));
    }
  }
}

TEST_CASE("the quick form makes the buckets of every cap there is", "[sim][bucket_caps]") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Dice dice(seed);
    const StepModel model = small_model(dice, true);
    REQUIRE(all_contiguous(model.works, {}));
    std::vector<Bytes> sizes;
    for (const int index : model.works.arrival)
      sizes.push_back(model.works.gradients[static_cast<std::size_t>(index)].size);
    const ContiguousCaps caps(sizes);
    std::vector<int> ends;
    for (std::int64_t cap = 1, same = 0; cap <= total(model).count + 2; ++cap) {
      const std::vector<int> before = ends;
      ends.clear();
      const Bytes largest = caps.append(0, {cap}, ends);
      CAPTURE(seed, cap);
      REQUIRE(fixtures::buckets_of(model, ends) ==
              buckets_of(model.works, {}, std::nullopt, {cap}));
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
  StepModel model = small_model(dice, true);
  Training training;
  CHECK(all_contiguous(model.works, training));
  training.bucket_rule = BucketRule::before_overflow;
  CHECK_FALSE(all_contiguous(model.works, training));
  training = {};
  training.find_unused_parameters = true;
  CHECK_FALSE(all_contiguous(model.works, training));
  training = {};
  model.works.gradients.front().sparse = true;
  CHECK_FALSE(all_contiguous(model.works, training));
}

}  // namespace ddpsim
