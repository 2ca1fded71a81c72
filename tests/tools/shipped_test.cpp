#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

TEST_CASE("every scenario that ddpsim ships runs", "[tools][shipped]") {
  for (const char* folder : {"examples", "seeds", "measured"}) {
    const std::vector<std::string> files = shipped_files(folder);
    CHECK(files.size() >= 5);
    for (const std::string& file : files) {
      CAPTURE(file);
      const Outcome outcome = ddpsim({"run", file, "--quiet"});
      CHECK(outcome.code == 0);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.empty());
    }
  }
}

TEST_CASE("no strategy is predicted faster than the step without communication",
          "[tools][shipped]") {
  for (const char* folder : {"examples", "seeds"}) {
    for (const std::string& file : shipped_files(folder)) {
      const Outcome outcome = ddpsim(
          {"run", file, "--json", "-", "--set", "compare=[none, naive, flat, overlap, bucketed]"});
      REQUIRE(outcome.code == 0);
      const Json run = outcome.json();
      for (const Json& each : run["results"]) {
        CAPTURE(file, each["strategy"]);
        CHECK(each["step_ms"] >= run["results"][0]["step_ms"]);
        CHECK(each["exposed_ms"] >= 0);
      }
    }
  }
}

TEST_CASE("every measured file can be scored", "[tools][shipped]") {
  std::vector<std::string> arguments = shipped_files("measured");
  const std::size_t files = arguments.size();
  arguments.insert(arguments.begin(), {"score", "--json", "-"});
  const Outcome outcome = ddpsim(arguments);
  REQUIRE(outcome.code == 0);
  std::vector<std::string> scored;
  const Json score = outcome.json();
  for (const Json& row : score["rows"]) {
    const std::string file = row["file"];
    if (scored.empty() || scored.back() != file) scored.push_back(file);
    CAPTURE(file);
    CHECK(row["predicted_step_ms"] > 0);
  }
  CHECK(scored.size() == files);
}

}  // namespace
}  // namespace ddpsim
