// What no one writes on purpose, or someone does: files made to break a parser. Each is refused
// with one line, in the time of a few seconds, without a crash.

#include <chrono>
#include <random>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t below_the_limit = 7'000'000;  // files over 8 MiB are not read at all

std::string repeated(std::string_view text, std::size_t bytes = below_the_limit) {
  std::string all;
  all.reserve(bytes);
  while (all.size() + text.size() <= bytes) all += text;
  return all;
}

/// Refused in one line of bounded length, and soon (the sanitizers are slow).
void check_refused(const std::string& content) {
  const Scratch scratch;
  const auto begin = std::chrono::steady_clock::now();
  const std::string message = refusal(scratch, content);
  const auto took = std::chrono::steady_clock::now() - begin;
  CAPTURE(message.substr(0, 500));
  CHECK_THAT(message, Catch::StartsWith("s.yaml"));
  CHECK(message.size() < 500);
  CHECK(message.find_first_of("\n\r\x1b") == std::string::npos);
  CHECK(took < std::chrono::seconds(60));
}

TEST_CASE("a file over 8 MiB is refused unread", "[scenarios][hostile]") {
  const Scratch scratch;
  std::mt19937_64 random(1);
  std::string noise(10'000'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  CHECK(refusal(scratch, noise) == "s.yaml:1:1: larger than 8 MiB");
  CHECK(refusal(scratch, std::string(10'000'000, '[')) == "s.yaml:1:1: larger than 8 MiB");
}

TEST_CASE("nesting too deep to be meant is refused before the stack ends", "[scenarios][hostile]") {
  const Scratch scratch;
  for (const char* opening : {"[", "{", "{a: ", "- ", "? ", "[{a: "}) {
    CAPTURE(opening);
    CHECK_THAT(refusal(scratch, repeated(opening, 1'000'000)),
               Catch::EndsWith("nested too deeply: is this a scenario?"));
  }
  std::string stairs;
  for (std::size_t depth = 0; depth < 3000; ++depth) stairs += std::string(depth, ' ') + "a:\n";
  CHECK_THAT(refusal(scratch, stairs), Catch::EndsWith("nested too deeply: is this a scenario?"));
}

TEST_CASE("nesting that ends is refused as well", "[scenarios][hostile]") {
  check_refused("name: " + std::string(3'500'000, '[') + std::string(3'500'000, ']') + "\n");
}

TEST_CASE("seven million bytes of one thing are refused", "[scenarios][hostile]") {
  check_refused(repeated("k") + ": 1\n");
  check_refused("name: " + repeated("v") + "\n");
  check_refused(std::string(1, '"').append(repeated("q")));
  check_refused("a: |\n" + repeated("  b\n"));
  check_refused(repeated("&a "));
  check_refused(repeated("!"));
  check_refused(repeated("\n"));
  check_refused(repeated(" "));
  check_refused(repeated("# c\n"));
  check_refused(repeated("%a\n"));
  check_refused(repeated("...\n"));
}

TEST_CASE("two hundred thousand keys, list entries or documents are refused",
          "[scenarios][hostile]") {
  std::string keys;
  for (int i = 0; i < 200'000; ++i) keys += fmt::format("k{}: 1\n", i);
  check_refused(good_scenario + keys);
  check_refused("workload: [" + repeated("1,", 1'000'000) + "]\n");
  check_refused(spoiled(11, "compare: [" + repeated("x,", 1'000'000) + "]"));
  check_refused(repeated("--- a\n", 3'000'000));
}

TEST_CASE("noise of every kind is refused", "[scenarios][hostile]") {
  std::mt19937_64 random(2);
  std::string noise(below_the_limit, '\0');
  check_refused(noise);
  for (char& c : noise) c = static_cast<char>(random());
  check_refused(noise);
  for (char& c : noise) c = static_cast<char>(' ' + random() % 95);
  check_refused(noise);
  const std::string syntax = " \n:-[]{},&*!|>'\"%@`#?ab1";
  for (int i = 0; i < 200; ++i) {
    std::string text(400, ' ');
    for (char& c : text) c = syntax[random() % syntax.size()];
    check_refused(text);
  }
}

TEST_CASE("NUL bytes and other encodings are refused", "[scenarios][hostile]") {
  const Scratch scratch;
  check_refused(std::string("na\0me: x\nworkload: 1\n", 21));
  check_refused(std::string("\0", 1));
  check_refused("\xff\xfe\xff\xfe");
  check_refused("\xef\xbb\xbf");
  // A scenario with a UTF-8 byte order mark is a scenario.
  CHECK(refusal(scratch, "\xef\xbb\xbf" + good_scenario).empty());
}

TEST_CASE("aliases that multiply to 10^30 items cost nothing", "[scenarios][hostile]") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string below = fmt::format("*a{}", i - 1);
    bomb += fmt::format("a{}: &a{} [{}", i, i, below);
    for (int j = 1; j < 10; ++j) bomb += ", " + below;
    bomb += "]\n";
  }
  check_refused(bomb + good_scenario);
  check_refused(bomb + "name: *a29\n");
  check_refused(bomb + "compare: *a29\n" + good_scenario);
}

TEST_CASE("an alias to nothing or to its own surroundings is refused", "[scenarios][hostile]") {
  check_refused("name: *nobody\n");
  check_refused("name: x\nworkload: &w {model: *w}\ncluster: *w\n");
  check_refused("&all\nworkload: *all\ncluster: *all\n");
  check_refused(spoiled(11, "compare: &c [*c]"));
}

TEST_CASE("an alias of something good is good", "[scenarios][hostile]") {
  const Scratch scratch;
  CHECK(refusal(scratch, spoiled(10, "  bucket_cap: &size 25 MiB\n  first_bucket_cap: *size"))
            .empty());
}

TEST_CASE("tags that fit change nothing, and no other tag is taken", "[scenarios][hostile]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 3, "  batch: !!int 8").empty());
  CHECK(refusal_at(scratch, 3, "  batch: !!str 8").empty());
  CHECK_THAT(refusal_at(scratch, 3, "  batch: !!binary OA=="),
             Catch::EndsWith("the tag !!binary means nothing here: leave it out"));
  CHECK_THAT(refusal_at(scratch, 3, "  batch: !!python/object/apply:os.system ['id']"),
             Catch::EndsWith("the tag !!python/object/apply:os.system means nothing here: leave it "
                             "out"));
}

TEST_CASE("unprintable or endless keys and values leave the error one line",
          "[scenarios][hostile]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 12, "\"a\\nb\\e[2J\\u2028\\u0085\\0\": 1") ==
        "s.yaml:12:1: a\\nb\\x1b[2J\\u2028\\u0085\\x00: unknown key" + known_in_scenario);
  CHECK(
      refusal_at(scratch, 3, "  batch: \"1\\n2\\t3\"") ==
      "s.yaml:3:10: workload.batch: expected a whole number from 1 to 10000000, got \"1\\n2\\t3\"");
  CHECK(refusal_at(scratch, 3, "  batch: " + std::string(100'000, '9')) ==
        "s.yaml:3:10: workload.batch: expected a whole number from 1 to 10000000, got \"" +
            std::string(60, '9') + "...\"");
  CHECK(refusal_at(scratch, 12, "\"" + std::string(900, 'k') + "\": 1") ==
        "s.yaml:12:1: " + std::string(60, 'k') + "...: unknown key" + known_in_scenario);
}

TEST_CASE("a file that holds no mapping is refused with what was expected",
          "[scenarios][hostile]") {
  const Scratch scratch;
  const std::string empty =
      "s.yaml:1:1: empty file: expected a mapping such as \"name: my first scenario\"";
  CHECK(refusal(scratch, "") == empty);
  CHECK(refusal(scratch, "# one comment\n# another\n") == empty);
  CHECK(refusal(scratch, "---\n...\n") == empty);
  CHECK(refusal(scratch, "~\n") == empty);
  const std::string mapping =
      "expected a mapping of keys to values, such as \"workload: {model: resnet50}\"";
  CHECK(refusal(scratch, "- a\n- b\n") == "s.yaml:1:1: " + mapping);
  CHECK(refusal(scratch, "\n  hello\n") == "s.yaml:2:3: " + mapping);
  CHECK(refusal(scratch, "name: a\n---\nname: b\n") ==
        "s.yaml:2:1: a second YAML document begins here: expected one");
  CHECK_THAT(refusal(scratch, "a: b: c\n"), Catch::StartsWith("s.yaml:1:5: not YAML: "));
  CHECK_THAT(refusal(scratch, "a: [1, 2\nb: 3\n"), Catch::StartsWith("s.yaml:1:4: not YAML: "));
}

TEST_CASE("a profile of twenty thousand parameters is read or refused in good time",
          "[scenarios][hostile]") {
  const Scratch scratch;
  std::string profile = "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 1 ms\nparameters:\n";
  std::string last;
  for (int i = 0; i < 20'000; ++i)
    profile += last = fmt::format("- {{name: p{}, shape: [8], ready: 1 ms}}\n", i);
  scratch.write("p.yaml", profile);
  const std::string scenario =
      "workload: {model: p.yaml}\ncluster: {device: h100-sxm}\ntraining: {buckets: [[p0, "
      "p20000]]}\n";
  CHECK_THAT(refusal(scratch, scenario),
             Catch::Contains("p has no parameter \"p20000\"; did you mean"));
  scratch.write("p.yaml", profile + last);
  CHECK_THAT(refusal(scratch, scenario), Catch::Contains("p19999"));
}

}  // namespace
}  // namespace ddpsim
