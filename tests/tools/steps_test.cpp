// Consecutive steps, phases and DDP's own statistics, asked of the program.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

Json bucketed(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"run", first_example, "--json",
                                     "-",   "--set",       "compare=[bucketed]"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json()["results"][0];
}

const std::string seeds = std::string(DDPSIM_SCENARIOS) + "/seeds/";

/// `count` steps of a seed, under one strategy.
Json ran_ahead(const std::string& seed, const std::string& strategy, int count,
               const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{
      "run",     seeds + seed + ".yaml", "--json",     "-", "--set", "compare=[" + strategy + "]",
      "--steps", std::to_string(count),  "--run-ahead"};
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
  const Outcome table = ddpsim({"run", first_example, "--ddp-statistics"});
  CHECK(table.code == 0);
  for (const char* name :
       {" avg_forward_compute_time ", " avg_backward_compute_time ", " avg_backward_comm_time ",
        " avg_backward_compute_comm_overlap_time ", "of one iteration (the last micro-batch)"})
    CHECK_THAT(table.out, Catch::Contains(name));
  CHECK_THAT(ddpsim({"run", "--help"}).out,
             Catch::Contains("PyTorch's own averages differ") &&
                 Catch::Contains("the last micro-batch; our comm is of the whole step"));
}

TEST_CASE("the communication that ran beside kernels is what the trace of the step has",
          "[tools][steps]") {
  // Kernels slow what runs beside them, so this is more than comm less exposed.
  const Scratch scratch;
  const std::string trace = scratch.path("t.json").string();
  const Outcome out = ddpsim(
      {"run", first_example, "--ddp-statistics", "--set", "compare=[bucketed]", "--trace", trace});
  REQUIRE(out.code == 0);
  const auto lines = lines_of(out.out);
  const auto heading = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("busy overlap ms") != std::string::npos;
  });
  REQUIRE(heading != lines.end());
  std::istringstream row(*(heading + 2));
  std::vector<std::string> words;
  for (std::string word; row >> word;) words.push_back(word);
  const double busy = std::stod(words.back()), comm = std::stod(words[words.size() - 2]);
  std::ifstream file(trace);
  const Json whole = Json::parse(file);
  double ratio = 0;
  for (const Json& rank : whole["ddpsim"]["ranks"]) {
    ratio = rank["busy_overlap"].get<double>();
    break;
  }
  CHECK(ratio > 0);
  CHECK(busy == Approx(ratio * comm).margin(0.02));
}

TEST_CASE("run --ddp-statistics says so where DDP's logger does not run", "[tools][steps]") {
  const Outcome none =
      ddpsim({"run", first_example, "--ddp-statistics", "--set", "compare=[naive,overlap]"});
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

TEST_CASE("R47: run --run-ahead shows where the host waits for timers, and what that costs",
          "[tools][steps]") {
  // Plain SGD is over sooner than the forward's first launches take.
  const std::vector<std::string> sgd{"--set", "workload.optimizer=sgd-plain", "--set",
                                     "workload.batch=6"};
  const Json result = ran_ahead("hooks-demo-4", "bucketed", 120, sgd);
  const Json& run = result["run_ahead"];
  CHECK(run["count"] == 120);
  std::vector<int> waiting;
  for (const Json& wait : run["host_waits"]) {
    waiting.push_back(wait["step"].get<int>());
    CHECK(wait["ms"] > 0);
  }
  CHECK(waiting == std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 101});
  const Json& periods = run["periods_ms"];
  REQUIRE(periods.size() == 120);
  const Json& kinds = result["steps"]["kinds"];
  CHECK(periods[0] == kinds[0]["step_ms"]);  // the first begins with an idle device
  // Launches of a forward of short kernels are what the device waits for when the host had to wait.
  const double alone = result["step_ms"], sampled = periods[10], steady = periods[50];
  CHECK(sampled < alone);
  CHECK(steady < sampled);
  CHECK(periods[100] == periods[10]);
  CHECK(periods[101] == periods[50]);
  double total = 0;
  for (const Json& period : periods) total += period.get<double>();
  CHECK(run["total_ms"].get<double>() == Approx(total));
  CHECK(run["mean_period_ms"].get<double>() == Approx(total / 120));
  const double apart = run["one_after_the_other_ms"];
  CHECK(apart == result["steps"]["total_ms"].get<double>());
  CHECK(run["gain"].get<double>() == Approx(1 - total / apart));

  // AdamW keeps the device at work while the host waits and launches, where the slowest rank is
  // some per cent later: its waits cost nothing.
  const Json behind =
      ran_ahead("hooks-demo-4", "bucketed", 20, {"--set", "cluster.skew=3.5 %"})["run_ahead"];
  CHECK(behind["host_waits"].size() == 10);
  CHECK(behind["periods_ms"][10] == behind["periods_ms"][15]);
}

TEST_CASE("a host that is ahead costs the device nothing", "[tools][steps]") {
  for (const std::string seed : {"hooks-demo-4", "overlap-hook"}) {
    CAPTURE(seed);
    const Json ahead = ran_ahead(seed, "none", 20)["run_ahead"];
    // Without communication a step is then as long as one whose launches are free.
    const Outcome free =
        ddpsim({"run", seeds + seed + ".yaml", "--set", "compare=[none]", "--set",
                "cluster.launch={kernel: 0 us, collective: 0 us, hook: 0 us}", "--json", "-"});
    REQUIRE(free.code == 0);
    CHECK(ahead["periods_ms"].back() == free.json()["results"][0]["step_ms"]);
    CHECK(ahead["host_waits"].empty());
  }
}

TEST_CASE("the example of --run-ahead in the help works, and its table adds up", "[tools][steps]") {
  const std::string help = ddpsim({"run", "--help"}).out;
  const std::string example =
      "ddpsim run --steps 200 --run-ahead scenarios/seeds/hooks-demo-4.yaml";
  CHECK_THAT(help, Catch::Contains(example));
  const Outcome table =
      ddpsim({"run", "--steps", "200", "--run-ahead", seeds + "hooks-demo-4.yaml"});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("200 steps in which the host runs ahead") &&
                            Catch::Contains("host waited ms") &&
                            Catch::Contains("the host waited for timers 11 times") &&
                            Catch::Contains("the host waited for timers 0 times"));
}

TEST_CASE("a run in which the host cannot run ahead is refused in one line", "[tools][steps]") {
  const std::string cpus = std::string(DDPSIM_SCENARIOS) + "/examples/cpu-cluster.yaml";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"run", first_example, "--run-ahead"}, "say how many, such as --steps 100"},
      {{"run", cpus, "--steps", "3", "--run-ahead"},
       cpus + ": --run-ahead: here the host computes the kernels itself"},
      {{"run", first_example, "--steps", "1000000", "--run-ahead"}, "tasks as one: take --steps "},
      {{"run", first_example, "--steps", "3", "--run-ahead", "--vary",
        "training.bucket_cap=1MiB,2MiB"},
       "--vary takes neither"}};
  for (const auto& [arguments, message] : cases) {
    CAPTURE(arguments);
    const Outcome outcome = ddpsim(arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK_THAT(outcome.err, Catch::Contains(message));
  }
}

TEST_CASE("what makes no sense of steps is refused", "[tools][steps]") {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--steps", "0"},
                                               {"--steps", "-1"},
                                               {"--steps", "10000000"},
                                               {"--steps", "x"},
                                               {"--steps", "3", "--phase", "first"},
                                               {"--phase", "second"}}) {
    std::vector<std::string> arguments{"run", first_example};
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
                           Catch::Contains("default_hooks.bf16_compress_wrapper(") &&
                           Catch::Contains("from torch.distributed.algorithms.ddp_comm_hooks "
                                           "import default_hooks, powerSGD_hook"));
}

}  // namespace ddpsim
