// Buckets of whole networks, and buckets the user asks for.
#include "model/parallel/policy/bucket_plan.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "model/parallel/policy/refusals.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

StepWorks network(const Architecture& architecture) {
  return works_of(architectures::build(architecture), ring(2, 1us, gigabytes_per_second(1)));
}

std::vector<std::int64_t> sizes(const std::vector<Bucket>& buckets) {
  std::vector<std::int64_t> result;
  for (const Bucket& bucket : buckets) result.push_back(bucket.size.count);
  return result;
}

std::vector<std::size_t> tensors(const std::vector<Bucket>& buckets) {
  std::vector<std::size_t> result;
  for (const Bucket& bucket : buckets) result.push_back(bucket.parameters.size());
  return result;
}

std::vector<Bucket> planned(const StepWorks& works, Bytes cap) {
  Training training;
  training.bucket_cap = cap;
  return plan_buckets(works, training);
}

/// How many buckets of 1, 10, 100 and 1000 MiB, without a smaller first one.
std::vector<std::size_t> counts(const TransformerShape& shape, BucketRule rule) {
  const StepWorks works = network(Architecture{shape});
  Training training;
  training.first_bucket_cap.reset();
  training.bucket_rule = rule;
  std::vector<std::size_t> result;
  for (const int mebibytes : {1, 10, 100, 1000}) {
    training.bucket_cap = mebibytes * MiB;
    result.push_back(plan_buckets(works, training).size());
  }
  return result;
}

using Counts = std::vector<std::size_t>;
using Sizes = std::vector<std::int64_t>;

Training explicit_buckets(std::vector<std::vector<int>> buckets) {
  Training training;
  training.buckets = std::move(buckets);
  return training;
}

}  // namespace

TEST_CASE("ResNets have the buckets seen in real runs", "[model][bucket_plan]") {
  const StepWorks resnet18 = network(Architecture{architectures::resnet18});
  CHECK(sizes(planned(resnet18, 25 * MiB)) == Sizes{2'052'000, 28'852'224, 15'853'824});
  CHECK(sizes(planned(resnet18, 35 * MiB)) == Sizes{2'052'000, 38'297'600, 6'408'448});
  const StepWorks resnet50 = network(Architecture{architectures::resnet50});
  CHECK(tensors(planned(resnet50, 25 * MiB)) == Counts{2, 15, 12, 51, 81});
}

TEST_CASE("transformers have the bucket counts other people report", "[model][bucket_plan]") {
  const TransformerShape medium{architectures::Family::cs336, 24, 1024, 4096, 16, 0, 10000, 0};
  CHECK(counts(medium, BucketRule::torch) == Counts{170, 98, 15, 2});
  CHECK(counts(architectures::cs336_xl_2025, BucketRule::before_overflow) ==
        Counts{435, 339, 98, 8});
  CHECK(counts(architectures::cs336_small, BucketRule::before_overflow) == Counts{111, 50, 6, 1});
}

TEST_CASE("a step has the buckets that were planned", "[model][bucket_plan]") {
  const StepWorks works = network(Architecture{architectures::resnet18});
  const std::vector<Bucket> planned = plan_buckets(works, Training{});
  const FlatStep step = flat_step(works, Training{});
  REQUIRE(step.buckets.size() == planned.size());
  for (std::size_t b = 0; b < planned.size(); ++b) {
    CHECK(step.buckets[b].size == planned[b].size);
    CHECK(step.buckets[b].parameters == planned[b].parameters);
  }
}

TEST_CASE("parameter groups are contiguous and the last one goes first", "[model][bucket_plan]") {
  // Seven parameters, one per layer, arrive 6 ... 0. Three groups: 0 1 2, 3 4, 5 6.
  const StepWorks works =
      works_of(chain(7, 1ms, 1ms, {1000}), ring(2, 1us, gigabytes_per_second(1)));
  Training training;
  training.parameter_groups = 3;
  const std::vector<Bucket> buckets = plan_buckets(works, training);
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].parameters == std::vector<std::int32_t>{6, 5});
  CHECK(buckets[1].parameters == std::vector<std::int32_t>{4, 3});
  CHECK(buckets[2].parameters == std::vector<std::int32_t>{2, 1, 0});
  CHECK(sizes(buckets) == Sizes{2000, 2000, 3000});

  training.parameter_groups = 7;
  CHECK(plan_buckets(works, training).size() == 7);
  training.parameter_groups = 8;
  CHECK_THROWS_WITH(plan_buckets(works, training), Catch::Contains("8 parameter groups of 7"));
}

TEST_CASE("explicit buckets stand as they are given", "[model][bucket_plan]") {
  const StepWorks works = works_of(two_layers(), ring(2, 1us, gigabytes_per_second(1)));
  const std::vector<Bucket> buckets = plan_buckets(works, explicit_buckets({{0, 2}, {1}}));
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].parameters == std::vector<std::int32_t>{0, 2});
  CHECK(sizes(buckets) == Sizes{4040, 400});
}

TEST_CASE("explicit buckets hold every parameter once", "[model][bucket_plan]") {
  const StepWorks works = works_of(two_layers(), ring(2, 1us, gigabytes_per_second(1)));
  const auto plan = [&](std::vector<std::vector<int>> buckets) {
    return plan_buckets(works, explicit_buckets(std::move(buckets)));
  };
  CHECK_THROWS_WITH(plan({{2}, {1}}),
                    "training.buckets: parameter \"a\" is in no bucket (1 of 3 are missing)");
  CHECK_THROWS_WITH(plan({{2, 1}, {1, 0}}),
                    "training.buckets: parameter \"b\" is in a bucket already");
  CHECK_THROWS_AS(plan({{2, 1}, {0, 3}}), std::invalid_argument);
  CHECK_THROWS_AS(plan({{2, 1}, {0, -1}}), std::invalid_argument);
  CHECK_THROWS_AS(plan({{2, 1, 0}, {}}), std::invalid_argument);
}

TEST_CASE("what people write by a slip is told apart from what cannot be built",
          "[model][bucket_plan]") {
  Workload workload = two_layers();
  workload.parameters[0].dtype = DType::bf16;
  const StepWorks works = works_of(workload, ring(2, 1us, gigabytes_per_second(1)));
  const auto slip = [&](const Training& training) {
    CHECK_NOTHROW(plan_buckets(works, training));
    const std::optional<Refusal> refusal = slip_refusal(works, training);
    return refusal ? refusal->key + ": " + refusal->reason : "";
  };
  CHECK(slip(explicit_buckets({{1, 2}, {0}})) == "");
  CHECK(slip(explicit_buckets({{1, 2, 0}})) ==
        "training.buckets: \"a\" is bf16, but its bucket is fp32: a bucket has one type");
  Training twice = explicit_buckets({{1, 2}, {0}});
  twice.parameter_groups = 2;
  CHECK(slip(twice) ==
        "training.parameter_groups: parameter_groups excludes buckets and bucket_caps");
}

TEST_CASE("a delayed all-reduce is of parameters that there are", "[model][bucket_plan]") {
  const StepWorks works = works_of(two_layers(), ring(2, 1us, gigabytes_per_second(1)));
  Training training;
  training.delayed = DelayedAllReduce{{2}, -1};
  CHECK_THROWS_WITH(plan_buckets(works, training),
                    "training.delay_all_reduce.hook: there is no parameter -1: they are counted "
                    "from 0 to 2");
  training.delayed = DelayedAllReduce{{3}, 0};
  CHECK_THROWS_WITH(
      plan_buckets(works, training),
      "training.delay_all_reduce.parameters: there is no parameter 3: they are counted "
      "from 0 to 2");
}

TEST_CASE(
    "buckets that close before they overflow have no special first one unless it is asked for",
    "[model][bucket_plan]") {
  Training training;
  training.give_rule(BucketRule::before_overflow);
  CHECK(training.limits() == std::vector{default_bucket_cap});
  Training asked;
  asked.first_cap_given = true;
  asked.give_rule(BucketRule::before_overflow);
  CHECK(asked.limits() == std::vector{default_first_bucket_cap, default_bucket_cap});
}

TEST_CASE("caps and the rule reach the assignment", "[model][bucket_plan]") {
  // 1000 bytes each, arriving 6 ... 0.
  const StepWorks works =
      works_of(chain(7, 1ms, 1ms, {1000}), ring(2, 1us, gigabytes_per_second(1)));
  Training training;
  training.first_bucket_cap = Bytes{1000};
  training.bucket_cap = {2500};
  CHECK(tensors(plan_buckets(works, training)) == Counts{1, 3, 3});
  training.bucket_rule = BucketRule::before_overflow;
  CHECK(tensors(plan_buckets(works, training)) == Counts{1, 2, 2, 2});
  training.bucket_rule = BucketRule::torch;
  training.bucket_caps = {{2000}, {1000}, {4000}};
  CHECK(tensors(plan_buckets(works, training)) == Counts{2, 1, 4});
  training.bucket_caps.clear();
  training.first_bucket_cap.reset();
  CHECK(tensors(plan_buckets(works, training)) == Counts{3, 3, 1});
  // Never rebuilt: by registration order, the list reversed, the leftover first.
  training.find_unused_parameters = true;
  CHECK(tensors(plan_buckets(works, training)) == Counts{1, 3, 3});
  CHECK(plan_buckets(works, training)[0].parameters == std::vector<std::int32_t>{6});
}
