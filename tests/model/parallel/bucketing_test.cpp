#include "model/parallel/bucketing.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <stdexcept>

#include <catch2/catch.hpp>

namespace ddpsim {
namespace {

using Indices = std::vector<std::vector<int>>;
constexpr Bytes half_MiB = 512 * KiB;
constexpr Bytes unbounded{std::numeric_limits<std::int64_t>::max()};

Indices parameters(const std::vector<BucketAssignment>& buckets) {
  Indices all;
  for (const BucketAssignment& bucket : buckets) all.push_back(bucket.parameters);
  return all;
}

std::vector<Bytes> limits(const std::vector<BucketAssignment>& buckets) {
  std::vector<Bytes> all;
  for (const BucketAssignment& bucket : buckets) all.push_back(bucket.limit);
  return all;
}

std::vector<std::int64_t> sizes(const std::vector<BucketAssignment>& buckets,
                                std::span<const GradientInfo> gradients) {
  std::vector<std::int64_t> all;
  for (const BucketAssignment& bucket : buckets) {
    Bytes size;
    for (const int index : bucket.parameters)
      size += gradients[static_cast<std::size_t>(index)].size;
    all.push_back(size.count);
  }
  return all;
}

std::vector<int> ascending(std::size_t count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int> descending(std::size_t count) {
  std::vector<int> order = ascending(count);
  std::ranges::reverse(order);
  return order;
}

std::vector<GradientInfo> fp32_gradients(std::initializer_list<Bytes> sizes) {
  std::vector<GradientInfo> gradients;
  for (const Bytes size : sizes) gradients.push_back({.size = size});
  return gradients;
}

// Three Linear layers: weights of 4096x1024, 4096x4096, 1000x4096 in fp32, each with its bias.
const std::vector<GradientInfo> linear_layers =
    fp32_gradients({{16'777'216}, {16'384}, {67'108'864}, {16'384}, {16'384'000}, {4'000}});

// 0-7 hold 0.5 MiB, 8 and 9 hold 1 MiB.
const std::vector<GradientInfo> ten =
    fp32_gradients({half_MiB, half_MiB, half_MiB, half_MiB, half_MiB, half_MiB, half_MiB, half_MiB,
                    1 * MiB, 1 * MiB});

// A sparse embedding, then two dtypes in turns.
const std::vector<GradientInfo> mixed{{.size = {64'000'000}, .sparse = true},
                                      {8 * MiB, DType::bf16},
                                      {32 * KiB, DType::fp32},
                                      {16 * MiB, DType::bf16},
                                      {32 * KiB, DType::fp32},
                                      {8 * MiB, DType::bf16},
                                      {4 * MiB, DType::fp32}};

DdpBucketing with_limits(std::vector<Bytes> caps) {
  return {.limits = std::move(caps)};
}

DdpBucketing finding_unused(std::vector<Bytes> caps = DdpBucketing{}.limits) {
  return {.limits = std::move(caps), .find_unused_parameters = true};
}

std::vector<BucketAssignment> rebuilt(std::span<const GradientInfo> gradients,
                                      const DdpBucketing& ddp = {}) {
  return steady_buckets(gradients, descending(gradients.size()), ddp);
}

std::vector<BucketAssignment> in_order(std::span<const GradientInfo> gradients,
                                       std::vector<Bytes> caps,
                                       BucketRule rule = BucketRule::torch) {
  return assign_buckets(gradients, ascending(gradients.size()), caps, rule);
}

TEST_CASE("R1: a gradient as large as the limit closes its bucket", "[model][bucketing]") {
  const auto gradients = fp32_gradients({1 * MiB, 1 * MiB - Bytes{1}, Bytes{1}});
  // The second is one byte short, so it takes the third along.
  CHECK(parameters(in_order(gradients, {1 * MiB})) == Indices{{0}, {1, 2}});
}

TEST_CASE("the default caps are 1 MiB and then 25 MiB", "[model][bucketing]") {
  CHECK(DdpBucketing{}.limits == std::vector<Bytes>{{1'048'576}, {26'214'400}});
}

TEST_CASE("R5: the first iteration has one bucket per dtype", "[model][bucketing]") {
  const auto buckets = initial_buckets(linear_layers, {});
  CHECK(parameters(buckets) == Indices{{0, 1, 2, 3, 4, 5}});
  CHECK(sizes(buckets, linear_layers) == std::vector<std::int64_t>{100'306'848});
  CHECK(limits(buckets) == std::vector<Bytes>{unbounded});
}

TEST_CASE("R2, R7: the rebuild follows the arrival order inside and between buckets",
          "[model][bucketing]") {
  const auto buckets = rebuilt(linear_layers);
  // 4 000 + 16 384 000 passes 1 MiB; 16 384 + 67 108 864 passes 25 MiB, undivided; the rest is
  // left.
  CHECK(parameters(buckets) == Indices{{5, 4}, {3, 2}, {1, 0}});
  CHECK(sizes(buckets, linear_layers) ==
        std::vector<std::int64_t>{16'388'000, 67'125'248, 16'793'600});
  CHECK(limits(buckets) == std::vector<Bytes>{1 * MiB, 25 * MiB, 25 * MiB});
  // Every closing gradient exceeds 10 MiB too.
  CHECK(parameters(rebuilt(linear_layers, with_limits({1 * MiB, 10 * MiB}))) ==
        parameters(buckets));
}

TEST_CASE("R6, R9: looking for unused parameters keeps the initial buckets by size",
          "[model][bucketing]") {
  const auto buckets = initial_buckets(linear_layers, finding_unused());
  // Registration order: 0 passes 1 MiB; 16 384 + 67 108 864 passes 25 MiB; 3-5 are left; reversed.
  CHECK(parameters(buckets) == Indices{{3, 4, 5}, {1, 2}, {0}});
  CHECK(sizes(buckets, linear_layers) ==
        std::vector<std::int64_t>{16'404'384, 67'125'248, 16'777'216});
  CHECK(limits(buckets) == std::vector<Bytes>{25 * MiB, 25 * MiB, 1 * MiB});
  CHECK(parameters(rebuilt(linear_layers, finding_unused())) == parameters(buckets));
}

TEST_CASE("a static graph is rebuilt whether or not parameters may be unused",
          "[model][bucketing]") {
  DdpBucketing ddp = finding_unused();
  ddp.static_graph = true;
  CHECK(parameters(initial_buckets(linear_layers, ddp)) == Indices{{0, 1, 2, 3, 4, 5}});
  CHECK(parameters(rebuilt(linear_layers, ddp)) == Indices{{5, 4}, {3, 2}, {1, 0}});
}

TEST_CASE("R13: the first cap may go to the last bucket", "[model][bucketing]") {
  // DDP_SET_LAST_BUCKET_CAP: the arrival order and then the list are reversed.
  DdpBucketing ddp;
  ddp.first_limit_last = true;
  const auto buckets = rebuilt(linear_layers, ddp);
  CHECK(parameters(buckets) == Indices{{3, 4, 5}, {1, 2}, {0}});
  CHECK(limits(buckets).back() == 1 * MiB);
}

TEST_CASE("R12: the first limit applies once and the last repeats", "[model][bucketing]") {
  // Releases differ in the first limit when the user sets a cap of 2 MiB: 1 MiB, later 2 MiB.
  CHECK(parameters(rebuilt(ten, with_limits({1 * MiB, 2 * MiB}))) ==
        Indices{{9}, {8, 7, 6}, {5, 4, 3, 2}, {1, 0}});
  CHECK(parameters(rebuilt(ten, with_limits({2 * MiB, 2 * MiB}))) ==
        Indices{{9, 8}, {7, 6, 5, 4}, {3, 2, 1, 0}});
  CHECK(parameters(rebuilt(ten, finding_unused({1 * MiB, 2 * MiB}))) ==
        Indices{{9}, {6, 7, 8}, {2, 3, 4, 5}, {0, 1}});
  CHECK(parameters(rebuilt(ten, finding_unused({2 * MiB}))) ==
        Indices{{8, 9}, {4, 5, 6, 7}, {0, 1, 2, 3}});
}

TEST_CASE("R14: a list of limits is walked bucket by bucket", "[model][bucketing]") {
  const std::vector<Bytes> caps{half_MiB, 1 * MiB, 2 * MiB};
  const auto late = rebuilt(ten, with_limits(caps));
  CHECK(parameters(late) == Indices{{9}, {8}, {7, 6, 5, 4}, {3, 2, 1, 0}});
  CHECK(limits(late) == std::vector<Bytes>{half_MiB, 1 * MiB, 2 * MiB, 2 * MiB});
  // 0.5 + 1 MiB is below 2 MiB, so 7, 8 and 9 close at 2.5 MiB.
  DdpBucketing listed = with_limits(caps);
  listed.limits_at_construction = true;
  const auto early = initial_buckets(ten, listed);
  CHECK(parameters(early) == Indices{{7, 8, 9}, {3, 4, 5, 6}, {1, 2}, {0}});
  CHECK(sizes(early, ten).front() == 2'621'440);
}

TEST_CASE("R3, R4: dtypes and sparse gradients have buckets of their own", "[model][bucketing]") {
  const auto initial = initial_buckets(mixed, {});
  // By smallest index sparse (0), bf16 (1), fp32 (2); then reversed.
  CHECK(parameters(initial) == Indices{{2, 4, 6}, {1, 3, 5}, {0}});
  CHECK(sizes(initial, mixed) == std::vector<std::int64_t>{4'259'840, 33'554'432, 64'000'000});
  CHECK(limits(initial) == std::vector<Bytes>{unbounded, unbounded, {0}});

  const auto buckets = rebuilt(mixed);
  // Both dtypes start at 1 MiB; the sparse gradient, last to arrive, is ahead of the leftovers, of
  // which the dtype that came second is first.
  CHECK(parameters(buckets) == Indices{{6}, {5}, {0}, {3, 1}, {4, 2}});
  CHECK(sizes(buckets, mixed) ==
        std::vector<std::int64_t>{4'194'304, 8'388'608, 64'000'000, 25'165'824, 65'536});
  CHECK(limits(buckets) == std::vector<Bytes>{1 * MiB, 1 * MiB, {0}, 25 * MiB, 25 * MiB});
  // 6 (4 MiB) stays open; 5, 3 and 1 reach 8 MiB alone.
  CHECK(parameters(rebuilt(mixed, with_limits({8 * MiB}))) ==
        Indices{{5}, {3}, {1}, {0}, {6, 4, 2}});
}

TEST_CASE("before the rebuild buckets lie by smallest index", "[model][bucketing]") {
  // 1 (bf16) closes first, while 0 waits for 2; by index 0 comes first. Then the list is reversed.
  const std::vector<GradientInfo> gradients{
      {Bytes{4}, DType::fp32}, {Bytes{8}, DType::bf16}, {Bytes{4}, DType::fp32}};
  CHECK(parameters(in_order(gradients, {{8}})) == Indices{{1}, {0, 2}});
  CHECK(parameters(initial_buckets(gradients, finding_unused({{8}}))) == Indices{{1}, {0, 2}});
}

TEST_CASE("tf32 gradients share buckets with fp32 ones", "[model][bucketing]") {
  const std::vector<GradientInfo> gradients{{Bytes{4}, DType::tf32}, {Bytes{4}, DType::fp32}};
  CHECK(parameters(in_order(gradients, {1 * KiB})) == Indices{{0, 1}});
}

TEST_CASE("R15: nothing is padded inside a bucket", "[model][bucketing]") {
  // 2 + 6 = 8 is below 9; padded to 4 bytes each they would be 12 and close.
  const std::vector<GradientInfo> gradients{
      {Bytes{2}, DType::bf16}, {Bytes{6}, DType::bf16}, {Bytes{10}, DType::bf16}};
  CHECK(parameters(in_order(gradients, {{9}})) == Indices{{0, 1, 2}});
  CHECK(sizes(in_order(gradients, {{9}}), gradients) == std::vector<std::int64_t>{18});
}

TEST_CASE("before overflow a bucket closes rather than pass its limit", "[model][bucketing]") {
  const auto rule = BucketRule::before_overflow;
  const auto gradients = fp32_gradients({{6}, {4}, {4}, {1}});
  // torch: 6 + 4 reaches 8. Before overflow: 6 | 4 + 4 fills 8 exactly | 1.
  CHECK(parameters(in_order(gradients, {{8}})) == Indices{{0, 1}, {2, 3}});
  CHECK(parameters(in_order(gradients, {{8}}, rule)) == Indices{{0}, {1, 2}, {3}});
  // A limit is spent by each bucket: 3 | 3 + 3 | 3.
  const auto steps = in_order(fp32_gradients({{3}, {3}, {3}, {3}}), {{4}, {8}}, rule);
  CHECK(parameters(steps) == Indices{{0}, {1, 2}, {3}});
  CHECK(limits(steps) == std::vector<Bytes>{{4}, {8}, {8}});
  // Larger than the limit: alone, even as the first.
  CHECK(parameters(in_order(fp32_gradients({{20}, {3}, {20}, {3}}), {{8}}, rule)) ==
        Indices{{0}, {1}, {2}, {3}});
  CHECK(parameters(initial_buckets(ten, {.rule = rule})) == Indices{ascending(10)});
}

TEST_CASE("no gradients give no buckets", "[model][bucketing]") {
  CHECK(initial_buckets({}, {}).empty());
  CHECK(steady_buckets({}, {}, {}).empty());
}

TEST_CASE("limits must exist and be at least one byte", "[model][bucketing]") {
  CHECK_THROWS_AS(in_order(ten, {}), std::invalid_argument);
  CHECK_THROWS_WITH(in_order(ten, {1 * MiB, Bytes{0}}), Catch::Contains("at least one byte"));
  CHECK_THROWS_AS(in_order({}, {Bytes{-1}}), std::invalid_argument);
  CHECK_THROWS_AS(initial_buckets(ten, with_limits({})), std::invalid_argument);
  CHECK_NOTHROW(in_order(ten, {Bytes{1}}));
}

}  // namespace
}  // namespace ddpsim
