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

TEST_CASE("run --phase first is DDP's first iteration: one bucket and nothing hidden",
          "[tools][steps]") {
  const Json start = bucketed({"--phase", "first"}), steady = bucketed({"--phase", "steady"});
  CHECK(start["buckets"].size() == 1);
  CHECK(steady["buckets"].size() > 1);
  CHECK(start["step_ms"] > steady["step_ms"]);
  CHECK(start == bucketed({"--set", "training.phase=first"}));
  CHECK(steady == bucketed({}));
}

TEST_CASE("run --steps runs the phases as they come", "[tools][steps]") {
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

TEST_CASE("run --ddp-statistics prints the logger's averages beside ours", "[tools][steps]") {
  const Outcome table = ddpsim({"run", first, "--ddp-statistics"});
  CHECK(table.code == 0);
  for (const char* name :
       {" avg_forward_compute_time ", " avg_backward_compute_time ", " avg_backward_comm_time ",
        " avg_backward_compute_comm_overlap_time ", "of one iteration (the last micro-batch)"})
    CHECK_THAT(table.out, Catch::Contains(name));
  CHECK_THAT(ddpsim({"run", "--help"}).out,
             Catch::Contains("PyTorch's own averages differ") &&
                 Catch::Contains("the last micro-batch; our comm is of the whole step"));
}

TEST_CASE("run --ddp-statistics says so where DDP's logger does not run", "[tools][steps]") {
  const Outcome none =
      ddpsim({"run", first, "--ddp-statistics", "--set", "compare=[naive,overlap]"});
  CHECK(none.code == 0);
  CHECK_THAT(none.out, Catch::Contains("logger runs for bucketed only") &&
                           !Catch::Contains("avg_forward_compute_time"));
}

TEST_CASE("DDP logs communication of a hook that sends nothing", "[tools][steps]") {
  for (const std::string hook : {"noop", "{post_local_sgd: {gradient_allreduce: false}}"}) {
    CAPTURE(hook);
    const Json result = bucketed({"--ddp-statistics", "--set", "training.comm_hook=" + hook});
    CHECK(result["collectives"] == 0);
    CHECK(result["ddp_statistics"]["avg_backward_comm_time_ns"] > 0);
    CHECK(result["ddp_statistics"]["avg_backward_compute_comm_overlap_time_ns"] > 0);
  }
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
