#include "model/base/quantity.hpp"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

using namespace ddpsim;
using namespace std::chrono_literals;

TEST_CASE("times of any unit become ticks without loss", "[model][quantity]") {
  CHECK(Duration{20ns}.count() == 20'000);
  CHECK(Duration{5us} == 5000 * Duration{1ns});
  CHECK(Instant{5us} - Instant{2us} == 3us);
  CHECK(Instant{} + 1s == Instant{1000ms});
}

template <typename A, typename B>
concept addable = requires(A a, B b) {
  a + b;
};

TEST_CASE("instants cannot be added to each other", "[model][quantity]") {
  STATIC_REQUIRE(addable<Instant, Duration>);
  STATIC_REQUIRE_FALSE(addable<Instant, Instant>);
  STATIC_REQUIRE_FALSE(addable<Bytes, Duration>);
}

TEST_CASE("reals become time at the nearest tick", "[model][quantity]") {
  CHECK(from_seconds(1e-12) == Duration{1});
  CHECK(from_seconds(1.4e-12) == Duration{1});
  CHECK(from_seconds(1.6e-12) == Duration{2});
  CHECK(from_seconds(-1.6e-12) == Duration{-2});
  CHECK(scaled(10us, 0.25) == Duration{2'500ns});
  CHECK(scaled(Duration{3}, 0.5) == Duration{2});  // 1.5, away from zero
  CHECK(scaled(Duration{10}, 1.0 / 3) == Duration{3});
}

TEST_CASE("reals are rounded as the standard library rounds them", "[model][quantity]") {
  std::vector<double> edges{0, 0.25, 1e-300, 8e18};
  for (double whole = 1; whole < 4e18; whole = 2 * whole + 1)
    for (const double half : {whole - 0.5, whole, whole + 0.5}) edges.push_back(half);
  for (const double edge : edges)
    for (const double near : {std::nextafter(edge, 0), edge, std::nextafter(edge, 8e18)})
      for (const double ticks : {near, -near}) {
        CAPTURE(ticks);
        REQUIRE(from_ticks(ticks).count() == std::llround(ticks));
      }
}

TEST_CASE("bytes over a bandwidth are a time", "[model][quantity]") {
  CHECK(Bytes{1} / gigabytes_per_second(450) == Duration{2});  // 2.22 ps
  CHECK(Bytes{450'000} / gigabytes_per_second(450) == 1us);
  CHECK(4 * KiB / gigabytes_per_second(450) == Duration{9102});  // 9102.2 ps
}

TEST_CASE("a time beyond all is the farthest there is, on its side", "[model][quantity]") {
  CHECK(from_seconds(1e30) > std::chrono::hours{24 * 90});
  CHECK(from_seconds(-1e30) < -std::chrono::hours{24 * 90});
  CHECK(scaled(1s, 1e30) == from_seconds(1e30));
}

TEST_CASE("bytes count in powers of 1024", "[model][quantity]") {
  CHECK(25 * MiB == Bytes{26'214'400});
  CHECK(GiB == 1024 * MiB);
  CHECK(MiB == 1024 * KiB);
  CHECK(MiB - KiB == 1023 * KiB);
  Bytes sum{1};
  sum += KiB + KiB;
  CHECK(sum == Bytes{2049});
  CHECK(Bytes{1} < Bytes{2});
}

TEST_CASE("a time tells its length in any unit", "[model][quantity]") {
  CHECK(in_seconds(1500ms) == Approx(1.5));
  CHECK(in_ms(Duration{1'500us}) == Approx(1.5));
  CHECK(in_us(Duration{1'500ns}) == Approx(1.5));
  CHECK(in_ms(Instant{3ms}) == Approx(3));
}

TEST_CASE("people read quantities in the unit that fits", "[model][quantity]") {
  CHECK(to_string(Duration{}) == "0 us");
  CHECK(to_string(Duration{7}) == "7 ps");
  CHECK(to_string(Duration{20ns}) == "20 ns");
  CHECK(to_string(Duration{12'340us}) == "12.34 ms");
  CHECK(to_string(Duration{-3us}) == "-3 us");
  CHECK(to_string(Duration{90s}) == "90 s");
  CHECK(to_string(Bytes{1023}) == "1023 B");
  CHECK(to_string(25 * MiB) == "25 MiB");
  CHECK(to_string(Bytes{1536}) == "1.5 KiB");
  CHECK(to_string(gigabytes_per_second(450)) == "450 GB/s");
  CHECK(to_string(gigabytes_per_second(3350)) == "3.35 TB/s");
  CHECK(to_string(teraflops_per_second(989)) == "989 TFLOP/s");
}
