#include "scenarios/reader/text/quantity_text.hpp"

#include <chrono>
#include <limits>

#include <catch2/catch.hpp>

namespace ddpsim {
namespace {

using namespace std::chrono_literals;
constexpr Duration picosecond{1};

TEST_CASE("every unit of time is known", "[scenarios][quantity_text]") {
  CHECK(parse_duration("7 ps") == 7 * picosecond);
  CHECK(parse_duration("7 ns") == 7ns);
  CHECK(parse_duration("7 us") == 7us);
  CHECK(parse_duration("7 µs") == 7us);
  CHECK(parse_duration("7 ms") == 7ms);
  CHECK(parse_duration("7 s") == 7s);
  CHECK(parse_duration("7 min") == 7min);
}

TEST_CASE("every unit of size is known, powers of 1000 and of 1024", "[scenarios][quantity_text]") {
  CHECK(parse_bytes("3 B") == Bytes{3});
  CHECK(parse_bytes("3 kB") == Bytes{3'000});
  CHECK(parse_bytes("3 KB") == Bytes{3'000});
  CHECK(parse_bytes("3 MB") == Bytes{3'000'000});
  CHECK(parse_bytes("3 GB") == Bytes{3'000'000'000});
  CHECK(parse_bytes("3 TB") == Bytes{3'000'000'000'000});
  CHECK(parse_bytes("3 KiB") == 3 * KiB);
  CHECK(parse_bytes("3 MiB") == 3 * MiB);
  CHECK(parse_bytes("3 GiB") == 3 * GiB);
  CHECK(parse_bytes("3 TiB") == 3 * 1024 * GiB);
}

TEST_CASE("every unit of bandwidth is known, and a bit is an eighth of a byte",
          "[scenarios][quantity_text]") {
  const auto rate = [](const char* text) { return parse_bandwidth(text)->bytes_per_second; };
  CHECK(rate("8 B/s") == 8);
  CHECK(rate("8 kB/s") == 8e3);
  CHECK(rate("8 MB/s") == 8e6);
  CHECK(rate("8 GB/s") == 8e9);
  CHECK(rate("8 TB/s") == 8e12);
  CHECK(rate("8 KiB/s") == 8192);
  CHECK(rate("8 MiB/s") == 8.0 * 1024 * 1024);
  CHECK(rate("8 GiB/s") == 8.0 * 1024 * 1024 * 1024);
  CHECK(rate("8 bit/s") == 1);
  CHECK(rate("8 Mbit/s") == 1e6);
  CHECK(rate("8 Gbit/s") == 1e9);
  CHECK(rate("8 Mb/s") == 1e6);
  CHECK(rate("8 Gb/s") == 1e9);
  CHECK(rate("8 Tbit/s") == 1e12);
}

TEST_CASE("every unit of arithmetic is known", "[scenarios][quantity_text]") {
  const auto rate = [](const char* text) { return parse_flop_rate(text)->flops_per_second; };
  CHECK(rate("2 FLOP/s") == 2);
  CHECK(rate("2 MFLOP/s") == 2e6);
  CHECK(rate("2 GFLOP/s") == 2e9);
  CHECK(rate("2 TFLOP/s") == 2e12);
  CHECK(rate("2 PFLOP/s") == 2e15);
  CHECK(rate("2 GFLOPS") == 2e9);
  CHECK(rate("2 TFLOPS") == 2e12);
  CHECK(rate("2 PFLOPS") == 2e15);
}

TEST_CASE("the blank before a unit may be left out or repeated", "[scenarios][quantity_text]") {
  CHECK(parse_bytes("25MiB") == 25 * MiB);
  CHECK(parse_bytes("25   MiB") == 25 * MiB);
  CHECK(parse_duration("5us") == 5us);
}

TEST_CASE("a number without a unit is no quantity", "[scenarios][quantity_text]") {
  CHECK(!parse_duration("25"));
  CHECK(!parse_bytes("25"));
  CHECK(!parse_bandwidth("25 "));
  CHECK(!parse_flop_rate("25"));
  CHECK(!parse_bytes(""));
  CHECK(!parse_bytes("MiB"));
  CHECK(!parse_bytes(" MiB"));
}

TEST_CASE("a unit of another kind, or in other capitals, is none", "[scenarios][quantity_text]") {
  for (const char* text : {"5 MiB", "5 S", "5 Ms", "5 h", "5 msec"}) CHECK(!parse_duration(text));
  for (const char* text : {"5 ms", "5 mb", "5 Mb", "5 mib", "5 MiB/s"}) CHECK(!parse_bytes(text));
  for (const char* text : {"5 GB", "5 gb/s", "5 GB/S", "5 GBps"}) CHECK(!parse_bandwidth(text));
  for (const char* text : {"5 TFLOP", "5 TFlop/s", "5 T"}) CHECK(!parse_flop_rate(text));
}

TEST_CASE("nothing may stand before the number or after the unit", "[scenarios][quantity_text]") {
  for (const char* text : {"5 ms x", "5 ms ", "5 msx", " 5 ms", "+5 ms", "5\tms", "5 ms\n",
                           "5,0 ms", "5 5 ms", "0x5 ms", "5_000 ms", "five ms", "--5 ms"}) {
    CAPTURE(text);
    CHECK(!parse_duration(text));
  }
}

TEST_CASE("zero and negative amounts are parsed, for the caller to judge",
          "[scenarios][quantity_text]") {
  CHECK(parse_duration("0 s") == Duration::zero());
  CHECK(parse_duration("-5 ms") == -5ms);
  CHECK(parse_bytes("-1 KiB") == Bytes{-1024});
  CHECK(parse_bandwidth("-1 B/s")->bytes_per_second == -1);
}

TEST_CASE("fractions and exponents are numbers, and times round to the nearest picosecond",
          "[scenarios][quantity_text]") {
  CHECK(parse_duration("1.5 ms") == 1500us);
  CHECK(parse_duration("1e-3 s") == 1ms);
  CHECK(parse_duration("0.4 ps") == Duration::zero());
  CHECK(parse_duration("0.6 ps") == picosecond);
  CHECK(parse_bytes("2.5e3 B") == Bytes{2500});
  CHECK(parse_bytes("0.5 KiB") == Bytes{512});
}

TEST_CASE("a fraction of a byte is cut off, as DistributedDataParallel does with its caps",
          "[scenarios][quantity_text]") {
  // 0.3 MiB = 314572.8 bytes.
  CHECK(parse_bytes("0.3 MiB") == Bytes{314572});
  CHECK(parse_bytes("0.9 B") == Bytes{0});
}

TEST_CASE("no byte is lost to the rounding of a decimal", "[scenarios][quantity_text]") {
  // In doubles 1.001 times 1000 is 1000.9999999999999, and 16.311296 times 1e6 is
  // 16311295.999999998.
  CHECK(parse_bytes("1.001 kB") == Bytes{1001});
  CHECK(parse_bytes("16.311296 MB") == Bytes{16'311'296});
  CHECK(parse_bytes("1.0019 kB") == Bytes{1001});
}

TEST_CASE("what is not finite or does not fit is no quantity", "[scenarios][quantity_text]") {
  for (const char* number :
       {"nan", "-nan", "inf", "-inf", "infinity", "1e309", "-1e309", "1e99999"}) {
    CAPTURE(number);
    const std::string text = number;
    CHECK(!parse_duration(text + " s"));
    CHECK(!parse_bytes(text + " B"));
    CHECK(!parse_bandwidth(text + " B/s"));
    CHECK(!parse_flop_rate(text + " FLOP/s"));
    CHECK(!parse_number(text));
  }
  // Finite, but the product with the unit is not.
  CHECK(!parse_bandwidth("1e305 TB/s"));
  CHECK(!parse_flop_rate("1e305 PFLOP/s"));
  // A day is the longest time, 10^17 bytes the largest size.
  CHECK(parse_duration("1440 min") == 24h);
  CHECK(!parse_duration("1441 min"));
  CHECK(!parse_duration("-1441 min"));
  CHECK(parse_bytes("100000 TB") == Bytes{100'000'000'000'000'000});
  CHECK(!parse_bytes("100001 TB"));
}

TEST_CASE("a leading zero does not make a number octal", "[scenarios][quantity_text]") {
  CHECK(parse_integer("010") == 10);
  CHECK(parse_number("010") == 10.0);
  CHECK(parse_bytes("010 B") == Bytes{10});
}

TEST_CASE("a whole number has digits and perhaps a minus, and fits 64 bits",
          "[scenarios][quantity_text]") {
  CHECK(parse_integer("0") == 0);
  CHECK(parse_integer("-12") == -12);
  CHECK(parse_integer("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "9223372036854775808",
                           "123456789012345678901234567890", "1,000", "one"}) {
    CAPTURE(text);
    CHECK(!parse_integer(text));
  }
}

TEST_CASE("a number has nothing around it", "[scenarios][quantity_text]") {
  CHECK(parse_number("1.15") == 1.15);
  CHECK(parse_number("-2") == -2.0);
  CHECK(parse_number("1e3") == 1000.0);
  for (const char* text : {"", " 1", "1 ", "1.15x", "1.1.1", "0x1p3", "5 %"}) {
    CAPTURE(text);
    CHECK(!parse_number(text));
  }
}

}  // namespace
}  // namespace ddpsim
