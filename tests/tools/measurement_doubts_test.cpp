// What a measured file says against itself goes before the usual accuracy of such predictions.

#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sched.h>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "tests/scenarios/reader/calibrations.hpp"
#include "tests/tools/jobs.hpp"
#include "tools/study/machine_doubts.hpp"

namespace ddpsim {
namespace {

constexpr const char* doubt = "steps differ by 34 % from one to the next";
constexpr const char* usual = "off in the median";

std::string profile_with(const std::string& line) {
  return "format: ddpsim.workload/1\nforward: 60 ms\nbackward: 150 ms\noptimizer: 10 ms\n" + line +
         "parameters:\n  - {name: w, shape: [1024, 1024], dtype: fp32, ready: 150 ms}\n";
}

std::string doubts_line() {
  return std::string("doubts: [\"") + doubt + "\"]\n";
}

TEST_CASE("run and tune repeat a profile's doubts, and quote no accuracy then",
          "[tools][measurement_doubts]") {
  const Scratch scratch;
  for (const char* command : {"run", "tune"}) {
    const auto said = [&](const std::string& line, const std::vector<std::string>& more = {}) {
      scratch.write("p.yaml", profile_with(line));
      std::vector<std::string> words{command,  "p.yaml",       "--device", "generic-cpu",
                                     "--link", "ethernet-10g", "--ranks",  "4"};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome outcome = ddpsim(words, scratch.folder());
      CAPTURE(command, line, outcome.err);
      CHECK(outcome.code == 0);
      return outcome;
    };
    const Outcome sure = said(""), doubtful = said(doubts_line());
    CHECK_THAT(sure.out, Catch::Contains(usual));
    CHECK_THAT(sure.err, !Catch::Contains("doubtful"));
    CHECK_THAT(doubtful.out, !Catch::Contains(usual));
    CHECK_THAT(doubtful.err,
               Catch::Contains(std::string("note: the profile of p is doubtful: ") + doubt));
    CHECK(said(doubts_line(), {"--quiet"}).err.empty());
  }
}

TEST_CASE("run repeats the doubts of a calibration and of a link", "[tools][measurement_doubts]") {
  const Scratch scratch;
  std::string calibration = good_calibration;
  calibration.insert(calibration.find("ranks: 2"), doubts_line());
  scratch.write("c.yaml", calibration);
  scratch.write("l.yaml", "format: ddpsim.link/1\n" + doubts_line() +
                              "all_reduce: [{bytes: 4 KiB, time: 60 us}, {bytes: 1 MiB, time: 1 "
                              "ms}]\n");
  const auto noted = [&](const std::string& cluster) {
    scratch.write("s.yaml", "workload: {model: resnet18, batch: 2}\ncluster: {" + cluster + "}\n");
    const Outcome outcome = ddpsim({"run", "s.yaml"}, scratch.folder());
    CAPTURE(cluster, outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, !Catch::Contains(usual));
    return outcome.err;
  };
  CHECK_THAT(noted("calibration: c.yaml, ranks_per_node: 2"),
             Catch::Contains(std::string("note: the calibration is doubtful: ") + doubt));
  CHECK_THAT(noted("device: generic-cpu, ranks_per_node: 2, intra_node: l.yaml"),
             Catch::Contains(std::string("note: the table of l is doubtful: ") + doubt));
}

TEST_CASE("doubts are few short lines", "[tools][measurement_doubts]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& value) {
    scratch.write("p.yaml", profile_with("doubts: " + value + "\n"));
    const Outcome outcome = ddpsim(
        {"tune", "p.yaml", "--device", "generic-cpu", "--link", "ethernet-10g", "--ranks", "4"},
        scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    return scratch.without_folder(outcome.err);
  };
  const std::string place = "ddpsim: p.yaml:5:";
  CHECK_THAT(refused("busy"), Catch::StartsWith(place + "9: doubts: expected a list of texts"));
  CHECK_THAT(
      refused("[" + std::string(501, 'x') + "]"),
      Catch::StartsWith(place + "10: doubts: expected a text of at most 500 bytes, got 501"));
  CHECK_THAT(refused("[fine, \"\\e[31mred\"]"),
             Catch::StartsWith(place + "16: doubts: expected a text of one line"));
  CHECK_THAT(refused("[\"two\\nlines\"]"), Catch::Contains("a text of one line"));
  std::string many;
  for (int i = 0; i < 21; ++i) many += "x, ";
  CHECK_THAT(refused("[" + many + "]"), Catch::Contains("expected at most 20 texts, got 21"));
}

TEST_CASE("a calibration made beside other programs says so, and keeps it for run",
          "[tools][measurement_doubts][validate]") {
  const Scratch scratch;
  scratch.write("small.yaml", small_mlp);
  const std::vector<std::string> calibrate{
      "calibrate", "small.yaml", "--backend", "threads",   "--ranks", "2",     "--repeats",
      "1",         "--smallest", "128 KiB",   "--largest", "256 KiB", "--set", "training.hooks=[]",
      "-o",        "busy.yaml"};
  const BusyLoops loops;
  const Outcome outcome = ddpsim(calibrate, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("note: the calibration is doubtful: ") &&
                              Catch::Contains("other programs were at work: they left "));
  const Calibration made = read_calibration(scratch.path("busy.yaml"));
  REQUIRE_FALSE(made.doubts.empty());
  CHECK_THAT(made.doubts.back(), Catch::StartsWith("other programs were at work: they left "));
  scratch.write("s.yaml",
                "workload: {model: {family: mlp, widths: [64, 96, 64, 32]}, batch: 8, dtype: fp32, "
                "optimizer: sgd}\ncluster: {calibration: busy.yaml}\n");
  CHECK_THAT(ddpsim({"run", "s.yaml"}, scratch.folder()).err,
             Catch::Contains("note: the calibration is doubtful: other programs were at work"));
}

TEST_CASE("a machine is doubted where its host or other programs took processors",
          "[tools][measurement_doubts]") {
  CHECK(machine_doubts(0, 1).empty());
  CHECK(machine_doubts(0.05, 0.9).empty());
  const auto both = machine_doubts(0.204, 0.31);
  REQUIRE(both.size() == 2);
  CHECK_THAT(both[0], Catch::Contains("took 20 % of its processors' time"));
  CHECK_THAT(both[1], Catch::Contains("they left 31 % of their processors' time"));
}

TEST_CASE("validate notices a program that keeps one of its ranks' two processors",
          "[tools][measurement_doubts][validate]") {
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  if (cores.size() < 2) return;  // one processor cannot be half taken
  // One thread that waits its turn finds the other processor free; two do not.
  const Running busy(
      {"taskset", "-c", std::to_string(cores[0]), "/bin/sh", "-c", "while :; do :; done"});
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const Outcome outcome =
      execute({"taskset", "-c", fmt::format("{},{}", cores[0], cores[1]), DDPSIM_PROGRAM,
               "validate", scenario, "--ranks", "2", "--steps", "1", "--warm-up", "0", "--repeats",
               "1", "--set", "compare=[flat]"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  std::string head = outcome.out.substr(0, outcome.out.find("strategy "));
  std::replace(head.begin(), head.end(), '\n', ' ');
  CHECK_THAT(head, Catch::Contains("other programs were at work: they left "));
}

TEST_CASE("all-reduces are doubted where smaller ones took longer, in a line that a file can keep",
          "[tools][measurement_doubts]") {
  const auto cost = [](Bytes size, Duration time) {
    return AllReduceCost{size, {time, time, time, 9, 0}};
  };
  using std::chrono::milliseconds;
  CHECK(all_reduce_doubt({cost(256 * KiB, milliseconds{8}), cost(MiB, milliseconds{10})}).empty());
  const std::string said =
      all_reduce_doubt({cost(256 * KiB, milliseconds{33}), cost(MiB, milliseconds{10})});
  CHECK_THAT(said, Catch::StartsWith("all-reduces of 256 KiB took 33 ms and of 1 MiB 10 ms: "));
  // What calibrate writes is read again, and run repeats it.
  const Scratch scratch;
  std::string calibration = good_calibration;
  calibration.insert(calibration.find("ranks: 2"), "doubts: [\"" + said + "\"]\n");
  scratch.write("c.yaml", calibration);
  CHECK(read_calibration(scratch.path("c.yaml")).doubts == std::vector{said});
}

}  // namespace
}  // namespace ddpsim
