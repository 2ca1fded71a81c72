#include "scenarios/reader/text/yaml_syntax.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr const char* flow = "end of map flow not found";
constexpr const char* value = "illegal map value";

/// "line:column: text", counted from 0, of what yaml-cpp noticed there.
std::string told(const std::string& content, int line, int column, const std::string& noticed) {
  const SyntaxProblem problem = explain_syntax(content, {line, column, noticed});
  return fmt::format("{}:{}: {}", problem.line, problem.column, problem.text);
}

TEST_CASE("the innermost bracket that is open is told with what closes it",
          "[scenarios][yaml_syntax]") {
  CHECK(told("a: {b: 1\nc: 2\n", 1, 1, flow) == "0:3: this { is not closed: its } is missing");
  CHECK(told("a: [1, 2\nc: 2\n", 1, 1, flow) == "0:3: this [ is not closed: its ] is missing");
  CHECK(told("a: {b: [1, 2}\n", 0, 12, flow) == "0:7: this [ is not closed: its ] is missing");
  // A pair that is closed is not meant; nor is what stands behind the place.
  CHECK(told("a: {b: [1, 2], c: 3\nd: 2\n", 1, 1, flow) ==
        "0:3: this { is not closed: its } is missing");
  CHECK(told("a: {b: 1\nc: [2\n", 1, 2, flow) == "0:3: this { is not closed: its } is missing");
  // Brackets in quotes are text, and an apostrophe within a word opens no quotes.
  CHECK(told("a: {b: \"[\", c: '['\nd: 2\n", 1, 1, flow) ==
        "0:3: this { is not closed: its } is missing");
  CHECK(told("a: {b: don't, c: [1\nd: 2\n", 1, 1, flow) ==
        "0:17: this [ is not closed: its ] is missing");
  CHECK(told("a: {b: 1 # [\nd: 2\n", 1, 1, flow) == "0:3: this { is not closed: its } is missing");
  CHECK(told("# {\na: 1}\n", 1, 4, flow) == fmt::format("1:4: {}", flow));  // none is open
}

TEST_CASE("a line that has no key's form is told where the slip is", "[scenarios][yaml_syntax]") {
  CHECK(told("a:\n\tb: 1\n", 1, 0, "anything") == "1:0: a tab: indent with spaces");
  CHECK(told("a:\n  b:\tc\n", 1, 0, "anything") == "1:0: anything");  // not of its indent
  CHECK(told("a:\n    b: 1\n  c: 2\n", 2, 2, "end of map not found") ==
        "2:2: this line is indented like no line above it: give it the indent of its neighbours");
  CHECK(told("a: b: c\n", 0, 4, value) == "0:4: a value that holds \": \" has to stand in quotes");
  const std::string no_colon =
      ": expected \"key: value\", such as \"model: gpt2\": there is no colon";
  CHECK(told("  model gpt2\n  batch: 8\n", 1, 7, value) == "0:2" + no_colon);
  CHECK(told("  model gpt2\n\n# a remark\n  batch: 8\n", 3, 7, value) == "0:2" + no_colon);
  CHECK(told("model: gpt2\n  batch: 8\n", 1, 7, value) ==
        "1:2: this line is indented deeper than the key above it, which has a value already: give "
        "both the same indent");
  CHECK(told("model:\nbatch: 8\n", 1, 7, value) == fmt::format("1:7: {}", value));
}

TEST_CASE("what is not understood is told as it was noticed", "[scenarios][yaml_syntax]") {
  CHECK(told("a: 1\n", 0, 1, "anything") == "0:1: anything");
  CHECK(told("batch: 8\n", 0, 7, value) == fmt::format("0:7: {}", value));  // nothing is above
  CHECK(told("a: 1\n", 1, 0, "behind the end") == "1:0: behind the end");
  CHECK(told("a: 1\n", -1, -1, "nowhere") == "-1:-1: nowhere");
}

}  // namespace
}  // namespace ddpsim
