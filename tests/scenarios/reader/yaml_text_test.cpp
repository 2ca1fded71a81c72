// What files of ours say, in the words of their reader.
#include "scenarios/reader/text/yaml_text.hpp"

#include <random>

#include <catch2/catch.hpp>

#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a time is written in the largest unit that it fills, to the picosecond",
          "[scenarios][yaml_text]") {
  CHECK(exact(Duration{0}) == "0 ps");
  CHECK(exact(Duration{999}) == "999 ps");
  CHECK(exact(Duration{1ns}) == "1 ns");
  CHECK(exact(Duration{1'001}) == "1.001 ns");
  CHECK(exact(Duration{999'999}) == "999.999 ns");
  CHECK(exact(Duration{1us}) == "1 us");
  CHECK(exact(Duration{1us} + Duration{1}) == "1.000001 us");
  CHECK(exact(Duration{1ms}) == "1 ms");
  CHECK(exact(Duration{12'500us}) == "12.5 ms");
  CHECK(exact(Duration{1s}) == "1 s");
  CHECK(exact(Duration{1'234'567'890'001}) == "1.234567890001 s");
}

TEST_CASE("a size is written in the largest unit that divides it", "[scenarios][yaml_text]") {
  CHECK(exact(Bytes{0}) == "0 B");
  CHECK(exact(Bytes{1023}) == "1023 B");
  CHECK(exact(Bytes{1024}) == "1 KiB");
  CHECK(exact(Bytes{1025}) == "1025 B");
  CHECK(exact(Bytes{1536}) == "1536 B");
  CHECK(exact(25 * MiB) == "25 MiB");
  CHECK(exact(MiB + KiB) == "1025 KiB");
  CHECK(exact(GiB + MiB) == "1025 MiB");
  CHECK(exact(3 * GiB) == "3 GiB");
}

TEST_CASE("a rate is written in giga or tera where that loses nothing", "[scenarios][yaml_text]") {
  CHECK(exact(Bandwidth{450e9}) == "450 GB/s");
  CHECK(exact(Bandwidth{62.5e6}) == "0.0625 GB/s");
  CHECK(exact(FlopRate{989.5e12}) == "989.5 TFLOP/s");
}

TEST_CASE("whatever is written reads back as it was", "[scenarios][yaml_text]") {
  std::mt19937_64 random(1);
  int plain = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto bits = static_cast<std::int64_t>(random() >> (1 + i % 62));
    CAPTURE(bits);
    // A double holds 53 bits; of those a time's number and its unit round the last two.
    const Duration time{bits >> 12};
    CHECK(parse_duration(exact(time)) == time);
    const Bytes size{bits >> 10};
    CHECK(parse_bytes(exact(size))->count == size.count);
    const Bandwidth rate{static_cast<double>(bits) / 3};
    CHECK(parse_bandwidth(exact(rate))->bytes_per_second == rate.bytes_per_second);
    const FlopRate flops{static_cast<double>(bits) / 3};
    CHECK(parse_flop_rate(exact(flops))->flops_per_second == flops.flops_per_second);
    plain += exact(rate).ends_with(" B/s") ? 1 : 0;
  }
  CHECK(plain > 0);  // rates that giga would round are among them
}

TEST_CASE("a text of any bytes is one quoted line that reads back", "[scenarios][yaml_text]") {
  const auto written = [](const std::string& text) {
    YAML::Emitter out;
    write_text(out, text);
    return std::string(out.c_str());
  };
  CHECK(written("") == "\"\"");
  CHECK(written("H100 µs") == "\"H100 µs\"");
  CHECK(written("a\nb") == "\"a\\nb\"");
  // DEL and the line breaks of Unicode are escaped, and nothing else is because of them elsewhere.
  for (const std::string text : {"a\x7f"
                                 "b",
                                 "a\xe2\x80\xa8z", "\xe2\x80\xa9", "µ\x7f", "\"\\'#: {}[]"}) {
    const std::string line = written(text);
    CAPTURE(line);
    for (const std::string raw : {"\x7f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\n"})
      CHECK(line.find(raw) == std::string::npos);
    CHECK(YAML::Load(line).Scalar() == text);
  }
  // A byte that is no UTF-8 becomes U+FFFD, and those around it stay.
  CHECK(YAML::Load(written("a\xff"
                           "b"))
            .Scalar() ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(YAML::Load(written("\xc3")).Scalar() == "\xef\xbf\xbd");
}

}  // namespace
}  // namespace ddpsim
