#include "model/cost/calibration_fit.hpp"

#include <array>
#include <cmath>
#include <random>

#include <catch2/catch.hpp>

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

MeasuredWork multiplication(Gemm gemm, Bytes traffic, Duration time, DType type = DType::fp32) {
  return measured(Operation::forward, gemm, traffic, type, {time, time, time, 1, 0});
}

MeasuredWork move(Bytes traffic, Duration time, Operation operation = Operation::copy_in) {
  return measured(operation, std::nullopt, traffic, DType::fp32, {time, time, time, 1, 0});
}

AllReduceCost all_reduce(Bytes size, Duration time) {
  return {size, {time, time, time, 1, 0}};
}

/// Shapes whose flops and bytes are far from proportional: squares, and long thin ones.
const std::array<Gemm, 5> shapes{
    {{64, 64, 64, 1}, {256, 256, 256, 1}, {1000, 1, 1000, 4}, {512, 512, 8, 1}, {10, 20, 30, 2}}};
Bytes traffic_of(const Gemm& g) {
  return {4 * g.batch * (g.m * g.k + g.k * g.n + 2 * g.m * g.n)};
}

}  // namespace

TEST_CASE("GEMM times of a law give the law back", "[model][calibration_fit]") {
  // 2 us, 1 TFLOP/s and 10 GB/s: 2'000'000 ticks, one a flop and 100 a byte.
  std::vector<MeasuredWork> tasks;
  for (const Gemm& shape : shapes) {
    const Bytes traffic = traffic_of(shape);
    const auto flops = 2 * shape.m * shape.n * shape.k * shape.batch;
    tasks.push_back(
        multiplication(shape, traffic, Duration{2'000'000 + flops + 100 * traffic.count}));
  }
  const auto law = fit_gemm(tasks, DType::fp32);
  REQUIRE(law);
  CHECK(in_us(law->constant) == Approx(2));
  CHECK(law->arithmetic.flops_per_second == Approx(1e12));
  CHECK(law->bandwidth.bytes_per_second == Approx(10e9));
  CHECK(law->residual < 1e-9);
  CHECK(law->points == 5);
  // 2 + 1 + 10 us.
  CHECK(in_us(law->time(1e6, {100'000})) == Approx(13));
}

TEST_CASE("streaming and all-reduce times of a law give the law back", "[model][calibration_fit]") {
  // 1 us and 20 GB/s: 50 ticks a byte. 100 us and 1 GB/s.
  std::vector<MeasuredWork> tasks;
  std::vector<AllReduceCost> points;
  for (std::int64_t bytes = 1000; bytes <= 10'000'000; bytes *= 10) {
    tasks.push_back(move({bytes}, Duration{1'000'000 + 50 * bytes}));
    points.push_back(all_reduce({bytes}, 100us + bytes * Duration{1ns}));
  }
  const auto streaming = fit_streaming(tasks);
  REQUIRE(streaming);
  CHECK(in_us(streaming->constant) == Approx(1));
  CHECK(streaming->bandwidth.bytes_per_second == Approx(20e9));
  CHECK(streaming->arithmetic.flops_per_second == infinity);
  const auto link = fit_all_reduce(points);
  REQUIRE(link);
  CHECK(in_us(link->constant) == Approx(100));
  CHECK(link->bandwidth.bytes_per_second == Approx(1e9));
  CHECK(link->points == 5);
}

TEST_CASE("filling a flat buffer says nothing of memory's bandwidth", "[model][calibration_fit]") {
  // Copies at 10 GB/s; torch's flat buffer above 32 MiB, whose pages are new each time, at a sixth.
  std::vector<MeasuredWork> tasks;
  for (const std::int64_t size : {1, 16, 64})
    tasks.push_back(move({size * 10'000'000}, size * 1ms));
  tasks.push_back(move({680'000'000}, 408ms, Operation::concatenate));
  const auto law = fit_streaming(tasks);
  REQUIRE(law);
  CHECK(law->bandwidth.bytes_per_second == Approx(10e9));
  CHECK(law->points == 3);
  // Where nothing else moved memory it has to do.
  CHECK(fit_streaming({tasks.back()})->bandwidth.bytes_per_second == Approx(680e6 / 0.408));
}

TEST_CASE("a constant that would be negative is left out", "[model][calibration_fit]") {
  // The line through (1 MB, 1 us) and (2 MB, 4 us) begins below zero. In proportion, x us a MB: the
  // squares (x - 1)^2 + (x / 2 - 1)^2 are least at x = 1.2, with errors of 0.2 and 0.4.
  const auto law = fit_streaming({move({1'000'000}, 1us), move({2'000'000}, 4us)});
  REQUIRE(law);
  CHECK(law->constant == 0us);
  CHECK(law->bandwidth.bytes_per_second == Approx(1e12 / 1.2));
  CHECK(law->residual == Approx(0.3));
}

TEST_CASE("a rate that would be negative is left out", "[model][calibration_fit]") {
  // 4 us for 1 MB and 2 us for 2 MB: (c / 4 - 1)^2 + (c / 2 - 1)^2 is least at c = 2.4.
  const auto law = fit_all_reduce({all_reduce({1'000'000}, 4us), all_reduce({2'000'000}, 2us)});
  REQUIRE(law);
  CHECK(in_us(law->constant) == Approx(2.4));
  CHECK(law->bandwidth.bytes_per_second == infinity);
  CHECK(law->residual == Approx(0.3));
  CHECK(law->time(0, {1 << 30}) == law->constant);
}

TEST_CASE("one point, or points of one size, are time in proportion to size",
          "[model][calibration_fit]") {
  const auto one = fit_streaming({move({1'000'000}, 10us)});
  REQUIRE(one);
  CHECK(one->constant == 0us);
  CHECK(one->time(0, {3'000'000}) == 30us);
  CHECK(one->residual == 0);
  CHECK(one->points == 1);
  // 1 and 2 us for 1 MB: (x - 1)^2 + (x / 2 - 1)^2 again.
  const auto two = fit_all_reduce({all_reduce({1'000'000}, 1us), all_reduce({1'000'000}, 2us)});
  REQUIRE(two);
  CHECK(two->constant == 0us);
  CHECK(two->time(0, {10'000'000}) == 12us);
  // Flops before bytes: 2000 of them in 2 us are 1 GFLOP/s.
  const auto gemm = fit_gemm({multiplication({10, 10, 10}, {1200}, 2us)}, DType::fp32);
  REQUIRE(gemm);
  CHECK(gemm->arithmetic.flops_per_second == Approx(1e9));
  CHECK(gemm->bandwidth.bytes_per_second == infinity);
}

TEST_CASE("without a time above zero there is no law", "[model][calibration_fit]") {
  CHECK(!fit_gemm({}, DType::fp32));
  CHECK(!fit_streaming({}));
  CHECK(!fit_all_reduce({}));
  CHECK(!fit_streaming({move({1'000'000}, 0us)}));
  CHECK(!fit_streaming({multiplication({1, 1, 1}, {12}, 1us)}));
  CHECK(!fit_gemm({move({1'000'000}, 1us)}, DType::fp32));
}

TEST_CASE("types multiply by laws of their own", "[model][calibration_fit]") {
  const std::vector<MeasuredWork> tasks{multiplication({10, 10, 10}, {1200}, 2us, DType::fp32),
                                        multiplication({10, 10, 10}, {600}, 1us, DType::bf16)};
  CHECK(fit_gemm(tasks, DType::fp32)->arithmetic.flops_per_second == Approx(1e9));
  CHECK(fit_gemm(tasks, DType::bf16)->arithmetic.flops_per_second == Approx(2e9));
  CHECK(!fit_gemm(tasks, DType::fp16));
}

TEST_CASE("no law without negative terms is nearer", "[model][calibration_fit][oracle]") {
  // Against coordinate descent: each coefficient in turn to its best value, or zero, many times.
  std::mt19937_64 random(7);
  const auto real = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  int dropped = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<MeasuredWork> tasks;
    std::vector<std::array<double, 3>> rows;  // (1, flops, bytes) / time, in us, Mflop and 100 kB
    const int points = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < points; ++i) {
      const auto extent = [&] { return 1 + static_cast<std::int64_t>(random() % 200); };
      const Gemm shape{extent(), extent(), extent(), 1};
      const Bytes traffic = traffic_of(shape);
      const Duration time = from_seconds(1e-6 * std::exp(real(-1, 3)));
      tasks.push_back(multiplication(shape, traffic, time));
      rows.push_back({1 / in_us(time), 1e-6 * shape.flops() / in_us(time),
                      1e-5 * static_cast<double>(traffic.count) / in_us(time)});
    }
    const auto squares = [&](const std::array<double, 3>& x) {
      double sum = 0;
      for (const auto& row : rows)
        sum += std::pow(x[0] * row[0] + x[1] * row[1] + x[2] * row[2] - 1, 2);
      return sum;
    };
    std::array<double, 3> slow{};
    for (int turn = 0; turn < 60'000; ++turn) {
      const auto j = static_cast<std::size_t>(turn % 3);
      double slope = 0, curvature = 0;
      for (const auto& row : rows) {
        slope += (slow[0] * row[0] + slow[1] * row[1] + slow[2] * row[2] - 1) * row[j];
        curvature += row[j] * row[j];
      }
      slow[j] = std::max(0.0, slow[j] - slope / curvature);
    }
    const auto law = fit_gemm(tasks, DType::fp32);
    REQUIRE(law);
    const std::array<double, 3> fitted{in_us(law->constant),
                                       1e12 / law->arithmetic.flops_per_second,
                                       1e11 / law->bandwidth.bytes_per_second};
    for (const double coefficient : fitted) {
      CHECK(coefficient >= 0);
      if (coefficient == 0) ++dropped;
    }
    CHECK(squares(fitted) <= squares(slow) + 1e-6);
  }
  CHECK(dropped > 300);  // noise: most laws lack a term
}

TEST_CASE("a calibrated cluster is the machine that was measured", "[model][calibration_fit]") {
  Calibration calibration;
  calibration.cpu = "a CPU, 2 cores";
  calibration.ranks = 4;
  calibration.launch = {1us, 2us, 3us};
  calibration.tasks = {multiplication({10, 10, 10}, {1200}, 2us), move({1'000'000}, 100us)};
  const CalibratedCluster cluster = cluster_of(calibration);
  CHECK(cluster.device.name == "a CPU, 2 cores");
  CHECK(cluster.device.synchronous);
  CHECK(cluster.device.memory_bandwidth == gigabytes_per_second(10));
  CHECK(cluster.device.peak_of(DType::fp32).flops_per_second == Approx(1e9));
  CHECK(cluster.device.peak_of(DType::bf16).flops_per_second == 0);
  CHECK(cluster.ranks() == 4);
  CHECK(cluster.launch == Launch{0us, 2us, 3us, 0us, 0us});
  CHECK(cluster.calibration == calibration);
  calibration.synchronous = false;
  CHECK(cluster_of(calibration).launch == calibration.launch);
}

TEST_CASE("a rate that no law shows is the best that was seen", "[model][calibration_fit]") {
  // Times do not depend on size: 2 MB in 10 us are 200 GB/s.
  Calibration calibration;
  calibration.tasks = {move({1'000'000}, 10us), move({2'000'000}, 10us)};
  CHECK(cluster_of(calibration).device.memory_bandwidth.bytes_per_second == Approx(2e11));
  // GEMMs alone: 1200 bytes in 2 us.
  calibration.tasks = {multiplication({10, 10, 10}, {1200}, 2us)};
  CHECK(cluster_of(calibration).device.memory_bandwidth.bytes_per_second == Approx(6e8));
  calibration.tasks.clear();
  CHECK(cluster_of(calibration).device.memory_bandwidth.bytes_per_second == 0);
}
