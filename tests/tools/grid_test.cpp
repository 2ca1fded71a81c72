#include "tools/study/grid.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/writers/csv.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

Words values(const std::string& text) {
  const Axis axis = parse_axis("key=" + text);
  CHECK(axis.key == "key");
  return axis.values;
}

std::string refusal(const std::string& text) {
  try {
    parse_axis(text);
  } catch (const InputError& problem) {
    return problem.what();
  }
  return "taken";
}

TEST_CASE("a list is split at commas, but not within brackets, braces and quotes",
          "[tools][grid]") {
  CHECK(values("a,b, c") == Words{"a", "b", "c"});
  CHECK(values("[1 MiB, 4 MiB],[25 MiB]") == Words{"[1 MiB, 4 MiB]", "[25 MiB]"});
  CHECK(values("{latency: 5 us, table: [{a: 1, b: 2}]},nvlink4") ==
        Words{"{latency: 5 us, table: [{a: 1, b: 2}]}", "nvlink4"});
  CHECK(values(R"("a, \"b,", 'c, d',it's)") == Words{R"("a, \"b,")", "'c, d'", "it's"});
}

TEST_CASE("white space around values does not count, ends of lines among it", "[tools][grid]") {
  CHECK(values("a,\n    b\t,\r\n{c: 1}\n") == Words{"a", "b", "{c: 1}"});
  CHECK(values("\n1MiB ..\n 4MiB * 2\n") == Words{"1MiB", "2MiB", "4MiB"});
  CHECK_THAT(refusal("key=a,\n,b"), Catch::EndsWith(": a value is empty"));
}

TEST_CASE("a range without a step goes up by one", "[tools][grid]") {
  CHECK(values("2..8") == Words{"2", "3", "4", "5", "6", "7", "8"});
  CHECK(values("3..3") == Words{"3"});
}

TEST_CASE("a range with + is arithmetic, one with * is geometric", "[tools][grid]") {
  CHECK(values("2..8+2") == Words{"2", "4", "6", "8"});
  CHECK(values("2..9+3") == Words{"2", "5", "8"});
  CHECK(values("1MiB..64MiB*2") ==
        Words{"1MiB", "2MiB", "4MiB", "8MiB", "16MiB", "32MiB", "64MiB"});
  CHECK(values("1..10*3") == Words{"1", "3", "9"});
}

TEST_CASE("a range counts in the unit of its first value", "[tools][grid]") {
  CHECK(values("512KiB..2MiB*2") == Words{"512KiB", "1024KiB", "2048KiB"});
  CHECK(values("1 us..1 ms*10") == Words{"1us", "10us", "100us", "1000us"});
  CHECK(values("1MiB..2MiB+512KiB") == Words{"1MiB", "1.5MiB", "2MiB"});
  // 8 bits are a byte: 200 Gbit/s are 25 GB/s.
  CHECK(values("12.5 GB/s..200 Gbit/s*2") == Words{"12.5GB/s", "25GB/s"});
}

TEST_CASE("steps of tenths end where they should", "[tools][grid]") {
  // 0.1 + 2 x 0.1 is 0.30000000000000004 in doubles.
  CHECK(values("0.1..0.5+0.1") == Words{"0.1", "0.2", "0.3", "0.4", "0.5"});
}

TEST_CASE("what does not begin with a number is no range", "[tools][grid]") {
  CHECK(values("../link.yaml,a..b,none") == Words{"../link.yaml", "a..b", "none"});
}

TEST_CASE("ranges that never end, go down or mix units are refused", "[tools][grid]") {
  const Words hostile{"8..2",     "2..8*1",   "2..8*0.5", "0..8*2",        "-1..8*2", "2..8+0",
                      "2..8+-1",  "1MiB..64", "1MiB..3s", "1MiB..8MiB*2s", "1..2..3", "2..",
                      "1..1e999", "1..8+x",   "1..8*nan", "1..8+inf",      "1..x2"};
  for (const std::string& text : hostile) {
    const std::string line = refusal("key=" + text);
    CAPTURE(text, line);
    CHECK(line.rfind("--vary key=" + text + ": ", 0) == 0);
  }
}

TEST_CASE("ranges of millions are refused before they are written out", "[tools][grid]") {
  CHECK(values("1..1000000").size() == 1'000'000);
  for (const char* text : {"1..1000001", "1..1e300", "1..1e300*1.0000000001", "0..1+1e-300"})
    CHECK_THAT(refusal(std::string("key=") + text), Catch::EndsWith("more than 1000000 values"));
}

TEST_CASE("a list that is no list is refused", "[tools][grid]") {
  CHECK_THAT(refusal("key"), Catch::Contains("expected KEY=VALUE,VALUE"));
  CHECK_THAT(refusal("=1"), Catch::Contains("expected KEY=VALUE,VALUE"));
  CHECK_THAT(refusal("key="), Catch::Contains("expected KEY=VALUE,VALUE"));
  CHECK(refusal("key=1,,2") == "--vary key=1,,2: a value is empty");
  CHECK(refusal("key=1,2,1") == "--vary key=1,2,1: 1 is in the list twice");
  CHECK(refusal("key=[1,2") == "--vary key=[1,2: \"]\" is missing");
  CHECK(refusal("key=[1,2}") == "--vary key=[1,2}: \"}\" closes nothing");
}

TEST_CASE("a grid holds every combination, the last key fastest", "[tools][grid]") {
  const Grid grid({{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}});
  REQUIRE(grid.points() == 6);
  CHECK(describe_point(grid, 0) == "a=1, b=x");
  CHECK(describe_point(grid, 1) == "a=1, b=y");
  CHECK(describe_point(grid, 5) == "a=2, b=z");
  for (std::size_t point = 0; point < 6; ++point)
    CHECK(grid.point_of(grid.indices(point)) == point);
}

TEST_CASE("a grid beyond a million points, or with a key twice, is refused", "[tools][grid]") {
  const Axis thousand = parse_axis("a=1..1000");
  Axis other = parse_axis("b=1..1000");
  CHECK(Grid({thousand, other}).points() == 1'000'000);
  other.values.emplace_back("one more");
  CHECK_THROWS_WITH(Grid({thousand, other}), "the grid has more than 1000000 points: vary less");
  CHECK_THROWS_WITH(Grid({thousand, thousand}), "--vary a: this key is varied twice");
}

TEST_CASE("CSV fields come back as they went in", "[tools][grid]") {
  const Words fields{"plain", "", "a,b", "say \"so\"", "two\nlines", "a\tb", "\""};
  std::string line;
  for (const std::string& field : fields) {
    if (!line.empty()) line += ',';
    line += csv_field(field);
  }
  line += "\nnext,one";
  CsvReader reader(line);
  CsvRecord record;
  REQUIRE(reader.next(record));
  CHECK(record.fields == fields);
  CHECK(reader.complete());
  REQUIRE(reader.next(record));
  CHECK(record.line == 3);  // the field of two lines makes three of two
  CHECK(record.fields == Words{"next", "one"});
  CHECK(!reader.complete());  // the text breaks off without the end of a line
  CHECK(!reader.next(record));
}

TEST_CASE("what a terminal would obey is spelled out in a CSV field", "[tools][grid]") {
  CHECK(csv_field("\x1b[2J\r\xc2\x9b") == "\\x1b[2J\\r\\u009b");
  CHECK(csv_field("a,\x1b") == "\"a,\\x1b\"");
}

}  // namespace
}  // namespace ddpsim
