// Consecutive steps, phases and DDP's own statistics, asked of the program.
#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

const std::string first = std::string(DDPSIM_SCENARIOS) + "/examples/first.yaml";

Json bucketed(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"run", first, "--json", "-", "--set", "compare=[bucketed]"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json()["results"][0];
}

}  // namespace

TEST_CASE("--phase first is DDP's first iteration: one bucket and nothing hidden",
          "[tools][steps]") {
  const Json start = bucketed({"--phase", "first"}), steady = bucketed({"--phase", "steady"});
  CHECK(start["buckets"].size() == 1);
  CHECK(steady["buckets"].size() > 1);
  CHECK(start["step_ms"] > steady["step_ms"]);
  CHECK(start == bucketed({"--set", "training.phase=first"}));
  CHECK(steady == bucketed({}));
}

TEST_CASE("--steps runs the phases as they come", "[tools][steps]") {
  const Json result = bucketed({"--steps", "1000"});
  const Json& steps = result["steps"];
  CHECK(steps["count"] == 1000);
  CHECK(steps["sequence"].size() == 1000);
  const Json& kinds = steps["kinds"];
  REQUIRE(kinds.size() == 3);  // the first, the rebuild, all others
  CHECK(kinds[0]["step_ms"] == bucketed({"--phase", "first"})["step_ms"]);
  CHECK(kinds[2]["step_ms"] == result["step_ms"]);
  CHECK(kinds[1]["collectives"] == kinds[2]["collectives"].get<int>() + 2);  // rule R10
  double total = 0;
  for (const Json& kind : steps["sequence"])
    total += kinds[kind.get<std::size_t>()]["step_ms"].get<double>();
  CHECK(steps["total_ms"].get<double>() == Approx(total));
}

TEST_CASE("--ddp-statistics prints the logger's averages beside ours", "[tools][steps]") {
  const Outcome table = ddpsim({"run", first, "--ddp-statistics"});
  CHECK(table.code == 0);
  for (const char* name :
       {"avg_backward_compute ", "avg_backward_comm ", "avg_backward_compute_comm_overlap "})
    CHECK_THAT(table.out, Catch::Contains(name));
  CHECK_THAT(ddpsim({"run", "--help"}).out, Catch::Contains("PyTorch's own averages differ"));
}

TEST_CASE("what makes no sense of steps is refused", "[tools][steps]") {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--steps", "0"},
                                               {"--steps", "-1"},
                                               {"--steps", "10000000"},
                                               {"--steps", "x"},
                                               {"--steps", "3", "--phase", "first"},
                                               {"--phase", "second"}}) {
    std::vector<std::string> arguments{"run", first};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CAPTURE(more);
    const Outcome outcome = ddpsim(arguments);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
  }
}

TEST_CASE("tune respects a comm hook and says how to register it", "[tools][tune]") {
  const Outcome text =
      ddpsim({"tune", std::string(DDPSIM_SCENARIOS) + "/seeds/comm-hooks-fast-link.yaml", "--set",
              "training.comm_hook={bf16_compress_wrapper: {powersgd: {rank: 4}}}"});
  CHECK_THAT(text.out, Catch::Contains("register_comm_hook(") &&
                           Catch::Contains("matrix_approximation_rank=4") &&
                           Catch::Contains("bf16_compress_wrapper("));
}

}  // namespace ddpsim
