// What comm hooks make of a bucket, by their own laws; against torch in comm_hooks_torch_test.cpp.

#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "backend/comm_hooks/orthogonalize.hpp"
#include "backend/comm_hooks/pairs.hpp"
#include "tests/backend/hooked_job.hpp"

namespace ddpsim {
namespace {

using Kind = OwnStep::Kind;

CommBucket vector_of(std::int64_t elements) {
  CommBucket bucket;
  bucket.gradients = {{elements, 1}};
  return bucket;
}

CommHook hook_of(CommHookKind kind) {
  CommHook hook;
  hook.kind = kind;
  return hook;
}

CommHook list_of(std::vector<Kind> kinds, DType type = DType::fp32, double share = 1) {
  CommHook hook = hook_of(CommHookKind::steps);
  for (const Kind kind : kinds) {
    OwnStep& step = hook.steps.emplace_back();
    step.kind = kind;
    step.type = type;
    step.share = share;
  }
  return hook;
}

PerRank random_gradients(std::int64_t elements, int ranks, unsigned seed = 1) {
  std::mt19937 engine(seed);
  PerRank values;
  for (int rank = 0; rank < ranks; ++rank) values.push_back(random_values(engine, elements));
  return values;
}

std::vector<float> sum_of(const PerRank& values) {
  std::vector<float> sum(values.front().size());
  for (const auto& mine : values)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += mine[i];
  return sum;
}

std::vector<float> mean_of(const PerRank& values) {
  std::vector<float> mean = sum_of(values);
  for (float& value : mean) value /= static_cast<float>(values.size());
  return mean;
}

double distance(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(a[i] - b[i], 2);
  return std::sqrt(sum);
}

double farthest(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
  return most;
}

PerRank run_once(const CommHook& hook, const CommBucket& bucket, PerRank values,
                 int iteration = 0) {
  HookedJob(hook, {bucket}, static_cast<int>(values.size())).run(0, iteration, values);
  return values;
}

/// sum_k weights[k] a_k b_k^T, a_k and b_k orthonormal: its singular values are the weights.
std::vector<float> matrix_with(std::span<const float> weights, std::int64_t rows,
                               std::int64_t columns) {
  const auto rank = static_cast<std::int64_t>(weights.size());
  std::mt19937 engine(5);
  std::vector<float> a = random_values(engine, rows * rank);
  std::vector<float> b = random_values(engine, columns * rank);
  orthogonalize(a, rows, rank, 0, false);
  orthogonalize(b, columns, rank, 0, false);
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t k = 0; k < rank; ++k)
        matrix[static_cast<std::size_t>(i * columns + j)] +=
            weights[static_cast<std::size_t>(k)] * a[static_cast<std::size_t>(i * rank + k)] *
            b[static_cast<std::size_t>(j * rank + k)];
  return matrix;
}

CommHook powersgd(int rank, bool feedback) {
  CommHook hook = hook_of(CommHookKind::powersgd);
  hook.powersgd.rank = rank;
  hook.powersgd.start_iteration = 2;
  hook.powersgd.error_feedback = feedback;
  return hook;
}

}  // namespace

TEST_CASE("columns made orthogonal are orthonormal and span what they did",
          "[backend][comm_hooks]") {
  for (const std::int64_t rank : {1, 2, 3, 4, 5})
    for (const bool sixteen_bit : {false, true}) {
      INFO(rank << " " << sixteen_bit);
      constexpr std::int64_t rows = 5;  // rank 5: square
      std::mt19937 engine(7);
      const std::vector<float> before = random_values(engine, rows * rank);
      std::vector<float> after = before;
      orthogonalize(after, rows, rank, 0, sixteen_bit);
      const auto product = [&](const std::vector<float>& one, std::int64_t i,
                               const std::vector<float>& other, std::int64_t j) {
        float sum = 0;
        for (std::int64_t row = 0; row < rows; ++row)
          sum += one[static_cast<std::size_t>(row * rank + i)] *
                 other[static_cast<std::size_t>(row * rank + j)];
        return sum;
      };
      for (std::int64_t i = 0; i < rank; ++i) {
        for (std::int64_t j = 0; j < rank; ++j)
          CHECK(product(after, i, after, j) == Approx(i == j ? 1 : 0).margin(1e-5));
        // |column|^2 = sum of squares of its coordinates, if it lies within the span.
        float within = 0;
        for (std::int64_t j = 0; j < rank; ++j)
          within += std::pow(product(before, i, after, j), 2.F);
        CHECK(within == Approx(product(before, i, before, i)).epsilon(1e-4));
      }
    }
}

TEST_CASE("R39: fp16 and bf16 compression average within their rounding",
          "[backend][comm_hooks][rules]") {
  const PerRank gradients = random_gradients(1000, 4);
  for (const auto& [kind, rounding] :
       {std::pair{CommHookKind::fp16_compress, 0x1p-11}, {CommHookKind::bf16_compress, 0x1p-8}}) {
    const PerRank results = run_once(hook_of(kind), vector_of(1000), gradients);
    for (const auto& result : results) CHECK(result == results.front());
    // Magnitudes up to 1: each of 4 quarters is rounded twice, and each of 3 sums once.
    const double error = farthest(results.front(), mean_of(gradients));
    CHECK(error <= (4 * 2 * 0.25 + 3) * rounding / 2);
    CHECK(error > 0);  // it did round
  }
}

TEST_CASE("a wrapper around a hook rounds what the hook works on", "[backend][comm_hooks]") {
  CommBucket bucket;
  bucket.gradients = {{40, 30}, {40, 1}, {12, 20}};
  const PerRank gradients = random_gradients(bucket.elements(), 2);
  for (const CommHookKind kind :
       {CommHookKind::allreduce, CommHookKind::powersgd, CommHookKind::batched_powersgd,
        CommHookKind::quantization_perchannel})
    for (const auto& [type, rounding] : {std::pair{DType::fp16, 0x1p-11}, {DType::bf16, 0x1p-8}}) {
      CommHook hook = powersgd(4, true);
      hook.kind = kind;
      const PerRank plain = run_once(hook, bucket, gradients);
      hook.wrappers = {type};
      const PerRank wrapped = run_once(hook, bucket, gradients);
      INFO(label(hook));
      CHECK(wrapped[0] == wrapped[1]);
      const double size = distance(plain[0], std::vector<float>(plain[0].size()));
      CHECK(distance(wrapped[0], plain[0]) < 8 * rounding * size);
      CHECK(distance(wrapped[0], plain[0]) > 0);
    }
}

TEST_CASE("fp16 overflow is counted: of values that were finite, on every rank",
          "[backend][comm_hooks]") {
  const float infinite = std::numeric_limits<float>::infinity();
  SECTION("on the way in") {
    HookedJob job(hook_of(CommHookKind::fp16_compress), {vector_of(6)}, 2);
    PerRank values{{1, 7e4F, -7e4F, 65519, infinite, 0}, {1, 2, 3, 4, 5, 6}};
    job.run(0, 0, values);
    CHECK(values[1][1] == infinite);
    CHECK(job.ranks().overflows(0) == 2);
    CHECK(job.ranks().overflows(1) == 3);  // three of its numbers came back infinite
    CHECK(job.ranks().overflows(0) == 0);  // told once
  }
  SECTION("in the sum") {
    HookedJob job(list_of({Kind::cast, Kind::all_reduce}, DType::fp16), {vector_of(3)}, 2);
    PerRank values{{4e4F, 1, 2}, {4e4F, 1, 2}};
    job.run(0, 0, values);
    CHECK(values[0] == std::vector<float>{infinite, 2, 4});
    CHECK(job.ranks().overflows(0) == 1);
    CHECK(job.ranks().overflows(1) == 1);
  }
  SECTION("bf16 reaches as far as fp32") {
    HookedJob job(hook_of(CommHookKind::bf16_compress), {vector_of(2)}, 2);
    PerRank values{{7e4F, 1e38F}, {7e4F, 1e38F}};
    job.run(0, 0, values);
    CHECK(job.ranks().overflows(0) == 0);
    CHECK(values[0][1] == Approx(1e38).epsilon(0x1p-8));
  }
}

TEST_CASE("R41: PowerSGD's first iterations are plain means", "[backend][comm_hooks][rules]") {
  const PerRank gradients = random_gradients(64, 2);
  CommBucket bucket;
  bucket.gradients = {{8, 8}};
  HookedJob job(powersgd(1, true), {bucket}, 2);
  for (const int iteration : {1, 2, 3}) {
    PerRank values = gradients;
    job.run(0, iteration, values);
    const double error = distance(values[0], mean_of(gradients));
    INFO(iteration);
    if (iteration <= 2)
      CHECK(error < 1e-6);
    else
      CHECK(error > 0.1);
    CHECK(job.ranks().error(0, 0).empty() == (iteration <= 2));
  }
}

TEST_CASE("PowerSGD of a matrix's own rank is exact", "[backend][comm_hooks]") {
  CommBucket bucket;
  bucket.gradients = {{30, 20}};
  for (const int rank : {1, 2, 3}) {
    const std::vector<float> weights{4, 2, 1};
    const std::vector<float> gradient =
        matrix_with(std::span(weights).first(static_cast<std::size_t>(rank)), 30, 20);
    const PerRank values = run_once(powersgd(rank, true), bucket, {gradient, gradient});
    CHECK(distance(values[0], gradient) < 1e-5);
  }
}

TEST_CASE("PowerSGD that starts warm comes nearer to the best approximation with every step",
          "[backend][comm_hooks]") {
  // Singular values 2, 1.5 and 0.5: of rank 1 the best misses sqrt(1.5^2 + 0.5^2), of rank 2 0.5.
  const std::vector<float> weights{2, 1.5F, 0.5F};
  const std::vector<float> gradient = matrix_with(weights, 30, 20);
  CommBucket bucket;
  bucket.gradients = {{30, 20}};
  for (const auto& [rank, best] : {std::pair{1, std::sqrt(2.5)}, {2, 0.5}}) {
    HookedJob job(powersgd(rank, false), {bucket}, 2);
    double before = std::numeric_limits<double>::infinity(), missed = 0;
    for (int step = 3; step < 40; ++step) {
      PerRank values{gradient, gradient};
      job.run(0, step, values);
      missed = distance(values[0], gradient);
      CHECK(missed < before + 1e-5);
      CHECK(missed > best - 1e-5);
      before = missed;
    }
    CHECK(missed == Approx(best).epsilon(1e-4));
  }
}

TEST_CASE("with error feedback PowerSGD gives in time all it was given: the residual falls",
          "[backend][comm_hooks]") {
  // A constant gradient of rank 3, different on each rank, compressed to rank 1. What was given in
  // T steps is T times the mean, less the errors kept: the mean over steps misses it by error / T.
  const std::vector<float> weights{3, 2, 1};
  const std::vector<float> first = matrix_with(weights, 30, 20);
  std::vector<float> second = first;
  for (float& value : second) value *= 0.5F;
  const std::vector<float> mean = mean_of({first, second});
  CommBucket bucket;
  bucket.gradients = {{30, 20}};
  HookedJob job(powersgd(1, true), {bucket}, 2);
  std::vector<float> given(mean.size());
  std::vector<double> residuals;
  for (int step = 1; step <= 64; ++step) {
    PerRank values{first, second};
    job.run(0, step + 2, values);
    for (std::size_t i = 0; i < given.size(); ++i) given[i] += values[0][i];
    if (step != 1 && step != 4 && step != 16 && step != 64) continue;
    std::vector<float> average = given;
    for (float& value : average) value /= static_cast<float>(step);
    residuals.push_back(distance(average, mean));
    // The errors are exactly what is missing: their mean over ranks, over the steps.
    std::vector<float> missing = mean_of({job.ranks().error(0, 0), job.ranks().error(1, 0)});
    for (std::size_t i = 0; i < missing.size(); ++i)
      missing[i] = mean[i] - missing[i] / static_cast<float>(step);
    CHECK(distance(average, missing) < 1e-3);
  }
  CHECK(residuals[1] < residuals[0]);  // the error grows until every direction has had its turn
  CHECK(residuals[2] < residuals[1] / 2);
  CHECK(residuals[3] < residuals[2] / 2);
}

TEST_CASE("R43: quantisation is off by no more than half a step of each rank",
          "[backend][comm_hooks][rules]") {
  const PerRank gradients = random_gradients(1500, 3);
  const std::vector<float> mean = mean_of(gradients);
  for (const CommHookKind kind :
       {CommHookKind::quantization_pertensor, CommHookKind::quantization_perchannel}) {
    const PerRank values = run_once(hook_of(kind), vector_of(1500), gradients);
    CHECK(values[0] == values[2]);
    // Values within [-1, 1): a step is at most 2 / 255, and the zero point is rounded too.
    CHECK(farthest(values[0], mean) < 2.0 / 255 + 1e-6);
    CHECK(farthest(values[0], mean) > 0);
  }
}

TEST_CASE("a reduce-scatter and an all-gather are an all-reduce", "[backend][comm_hooks]") {
  for (const std::int64_t elements : {2, 6, 7, 1000})  // 2: a rank has none
    for (const DType type : {DType::fp32, DType::fp16}) {
      const PerRank gradients = random_gradients(elements, 3);
      const PerRank whole = run_once(list_of({Kind::cast, Kind::all_reduce, Kind::scale}, type),
                                     vector_of(elements), gradients);
      const PerRank parts =
          run_once(list_of({Kind::cast, Kind::reduce_scatter, Kind::all_gather, Kind::scale}, type),
                   vector_of(elements), gradients);
      CHECK(parts == whole);
      CHECK(farthest(whole[0], mean_of(gradients)) < (type == DType::fp32 ? 1e-6 : 2e-3));
    }
}

TEST_CASE("an all-gather of everything sums it; a broadcast is rank 0's", "[backend][comm_hooks]") {
  const PerRank gradients = random_gradients(17, 3);
  const PerRank sums = run_once(list_of({Kind::all_gather}), vector_of(17), gradients);
  for (const auto& sum : sums) CHECK(sum == sum_of(gradients));
  const PerRank same = run_once(list_of({Kind::broadcast}), vector_of(17), gradients);
  for (const auto& values : same) CHECK(values == gradients.front());
}

TEST_CASE("topk sums the largest of each rank, and all of them if it takes all",
          "[backend][comm_hooks]") {
  const PerRank some = run_once(list_of({Kind::topk, Kind::all_gather}, DType::fp32, 0.5),
                                vector_of(4), {{1, -4, 2, 0}, {5, 3, -5, 3}});
  // Of rank 0: -4 and 2; of rank 1: 5 and -5.
  CHECK(some[0] == std::vector<float>{5, -4, -3, 0});
  CHECK(some[1] == some[0]);

  for (const DType type : {DType::fp32, DType::bf16}) {
    const PerRank gradients = random_gradients(333, 3);
    const PerRank all =
        run_once(list_of({Kind::cast, Kind::topk, Kind::all_gather, Kind::scale}, type, 1),
                 vector_of(333), gradients);
    CHECK(farthest(all[0], mean_of(gradients)) < (type == DType::fp32 ? 1e-6 : 2e-2));
  }
}

TEST_CASE("of equal magnitudes topk takes the first, and NaN before anything",
          "[backend][comm_hooks]") {
  const std::vector<float> values{2, -3, 3, NAN, 3, -2};
  CHECK(select_largest(values, 3).indices == std::vector<std::int32_t>{1, 2, 3});
  CHECK(select_largest(values, 4).indices == std::vector<std::int32_t>{1, 2, 3, 4});
  CHECK(select_largest(values, 5).indices == std::vector<std::int32_t>{0, 1, 2, 3, 4});
  CHECK(select_largest(values, 9).indices.size() == values.size());
  CHECK(select_largest({}, 1).indices.empty());
}

TEST_CASE("a pair that points nowhere is refused", "[backend][comm_hooks]") {
  std::vector<float> into(4);
  for (const std::int32_t index : {-1, 4, 0x7fffffff}) {
    std::vector<std::byte> wire(wire_size(1, DType::fp32));
    write({{index}, {1}}, DType::fp32, wire);
    CHECK_THROWS_WITH(add_pairs(wire, wire.size(), DType::fp32, into),
                      "a rank sent the value of element " + std::to_string(index) + " of 4");
  }
}

TEST_CASE("post_local_sgd averages within its subgroups only, also within a smaller last one",
          "[backend][comm_hooks]") {
  CommHook hook = hook_of(CommHookKind::post_local_sgd);
  hook.post_local_sgd.start_iteration = 1;
  hook.post_local_sgd.subgroup = 2;
  const PerRank values{{2}, {4}, {6}, {8}, {10}};
  CHECK(run_once(hook, vector_of(1), values, 2) == PerRank{{3}, {3}, {7}, {7}, {10}});
  CHECK(run_once(hook, vector_of(1), values, 1) == PerRank{{6}, {6}, {6}, {6}, {6}});
  hook.post_local_sgd.gradient_allreduce = false;
  CHECK(run_once(hook, vector_of(1), values, 2) == values);
}

TEST_CASE("noop, and kernels that only take time, leave the bucket as it is",
          "[backend][comm_hooks]") {
  const PerRank gradients = random_gradients(1001, 2);
  CHECK(run_once(hook_of(CommHookKind::noop), vector_of(1001), gradients) == gradients);
  CommHook hook = list_of({Kind::kernel});
  for (const double passes : {0.0, 0.3, 1.0, 5.0}) {
    hook.steps.front().passes = passes;
    CHECK(run_once(hook, vector_of(1001), gradients) == gradients);
  }
}

}  // namespace ddpsim
