#include "tools/report/reports/calibration_file.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include <catch2/catch.hpp>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

Calibration example() {
  Calibration calibration;
  calibration.backend = "gloo";
  calibration.machine = "host, Linux 6.1";
  calibration.cpu = "a CPU, 2 cores";
  calibration.link = "lo, loopback";
  calibration.versions = "ddpsim 0.1.0, Gloo 0.5.0";
  calibration.date = "2026-11-21T04:00:00Z";
  calibration.workload = "resnet18";
  calibration.ranks = 2;
  calibration.launch = {0us, 9us, 300ns};
  calibration.tasks = {measured(Operation::forward, Gemm{64, 256, 128, 1}, {786432}, DType::fp32,
                                {830us, 810us, 1ms, 40, 1}),
                       measured(Operation::copy_in, std::nullopt, {2'000'001}, DType::fp32,
                                {100us, 90us, 120us, 40, 0}),
                       measured(Operation::divide, std::nullopt, {4'000'002}, DType::fp32,
                                {200us, 90us, 320us, 40, 3})};
  calibration.all_reduce = {{4 * KiB, {60us, 55us, 71us, 40, 2}}, {1 * MiB, {1ms, 1ms, 2ms, 7, 0}}};
  calibration.interference = {{4 * MiB, 1.1, 0.95}};
  return calibration;
}

Calibration read_back(const Calibration& calibration) {
  const Scratch scratch;
  return read_calibration(scratch.write("c.yaml", calibration_yaml(calibration)));
}

/// The lines of the file that are neither comments nor before `key`, the last without its checksum.
std::vector<std::string> lines_from(const Calibration& calibration, const std::string& key) {
  std::vector<std::string> lines = lines_of(calibration_yaml(calibration));
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [](const std::string& line) { return line.front() == '#'; }),
              lines.end());
  lines.erase(lines.begin(), std::find(lines.begin(), lines.end(), key));
  const std::size_t seal = lines.back().find("  # ");
  REQUIRE(seal != std::string::npos);
  lines.back().resize(seal);
  return lines;
}

TEST_CASE("a calibration of CPUs for GPUs, and one that was interrupted, get a note",
          "[tools][calibration_file]") {
  const auto notes = [](bool on_cpus, bool complete, const std::string& device) {
    const Scratch scratch;
    Calibration calibration = example();
    calibration.synchronous = on_cpus;
    calibration.complete = complete;
    scratch.write("c.yaml", calibration_yaml(calibration));
    scratch.write("s.yaml", "workload: {model: resnet18, batch: 8}\ncluster: {device: " + device +
                                ", ranks_per_node: 2, calibration: c.yaml}\n");
    const Outcome run = ddpsim({"run", "s.yaml"}, scratch.folder());
    CHECK(run.code == 0);
    return std::pair{run.err.find("measured on CPUs (a CPU, 2 cores)") != std::string::npos,
                     run.err.find("the calibration was interrupted") != std::string::npos};
  };
  CHECK(notes(true, true, "h100-sxm") == std::pair{true, false});
  CHECK(notes(false, true, "h100-sxm") == std::pair{false, false});
  CHECK(notes(true, true, "generic-cpu") == std::pair{false, false});
  CHECK(notes(true, false, "generic-cpu") == std::pair{false, true});
}

TEST_CASE("the head names the device whose kernels a calibration has, and the link it measured",
          "[tools][calibration_file]") {
  const Scratch scratch;
  Calibration calibration = example();
  calibration.synchronous = false;
  calibration.cpu = "NVIDIA H200";
  calibration.link = "loopback on one GPU";
  scratch.write("c.yaml", calibration_yaml(calibration));
  const auto run = [&](const std::string& device, const std::vector<std::string>& more) {
    scratch.write("s.yaml", "workload: {model: resnet18, batch: 8}\ncluster: {device: " + device +
                                ", ranks_per_node: 2, intra_node: nvlink4}\n");
    std::vector<std::string> words{"run", "s.yaml", "--wide"};
    words.insert(words.end(), more.begin(), more.end());
    Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const std::vector<std::string> calibrated{"--set", "cluster.calibration=c.yaml"};
  const std::string kernels = "; kernels as measured on NVIDIA H200 (cluster.calibration)",
                    other =
                        "note: the calibration was measured on NVIDIA H200 and the cluster has ";
  CHECK_THAT(run("h100-sxm", {}).out, !Catch::Contains("kernels as measured"));
  // The links are the scenario's, and so are the all-reduces.
  CHECK_THAT(run("h100-sxm", calibrated).out,
             Catch::Contains("1 node x 2 h100-sxm by nvlink4, 450 GB/s of line rate per GPU; "
                             "all-reduce law: nccl" +
                             kernels));
  CHECK_THAT(run("h100-sxm", calibrated).err, Catch::Contains(other + "h100-sxm: kernels take"));
  CHECK_THAT(run("h200", calibrated).out, Catch::Contains(kernels));
  CHECK_THAT(run("h200", calibrated).err, !Catch::Contains(other));
  const Outcome whole = run("h100-sxm", {"--vary", "cluster={calibration: c.yaml}"});
  CHECK_THAT(whole.out, Catch::Contains("1 node x 2 NVIDIA H200 by links as measured, line rate "
                                        "not known; all-reduce law: table, measured over loopback "
                                        "on one GPU") &&
                            !Catch::Contains("kernels as measured"));
  CHECK_THAT(whole.err, !Catch::Contains(other));
  // "l4" is no part of "NVIDIA L40S".
  calibration.cpu = "NVIDIA L40S";
  scratch.write("c.yaml", calibration_yaml(calibration));
  CHECK_THAT(run("l4", calibrated).err, Catch::Contains("measured on NVIDIA L40S and the cluster"));
  CHECK_THAT(run("l40s", calibrated).err, !Catch::Contains("measured on NVIDIA L40S"));
}

TEST_CASE("a calibration written and read back is equal", "[tools][calibration_file]") {
  CHECK(read_back(example()) == example());
  CHECK(read_back(Calibration{}) == Calibration{});
  Calibration hooked = example();
  hooked.backward_beside_hook = 1.0625;
  hooked.tasks.push_back(hooked.tasks.back());
  hooked.tasks.back().aside = true;
  hooked.doubts = {"other programs were at work: they left 31 % of a processor", "a, b"};
  CHECK(read_back(hooked) == hooked);
  Calibration several = example();
  several.ranks = 4;
  several.collectives = {{Operation::all_reduce, 2, 4 * KiB, {20us, 15us, 31us, 4, 0}},
                         {Operation::all_gather, 2, 4 * KiB, {30us, 25us, 41us, 4, 2}},
                         {Operation::all_gather, 4, 2 * KiB, {60us, 55us, 71us, 40, 2}},
                         {Operation::send_receive, 2, 1 * MiB, {1ms, 1ms, 2ms, 7, 0}}};
  CHECK(read_back(several) == several);
  Calibration other = example();
  other.complete = other.synchronous = false;
  other.launch.kernel = 6us;
  other.all_reduce.clear();
  CHECK(read_back(other) == other);
}

TEST_CASE("an entry is a line, in units people read", "[tools][calibration_file]") {
  // The only GEMM does 2 x 64 x 256 x 128 flops in 830 us; both copies 20 GB/s. Through 4 KiB in 60
  // us and 1 MiB in 1 ms goes a line of 940 us for 1020 KiB, 1.11 GB/s, and 4 KiB of it are 3.7 us.
  CHECK(lines_from(example(), "tasks:") ==
        std::vector<std::string>{
            "tasks:",
            "  - {operation: forward, gemm: [64, 256, 128, 1], traffic: 768 KiB, type: fp32, time: "
            "830 us, low: 810 us, high: 1 ms, repeats: 40, outliers: 1}",
            "  - {operation: copy in, traffic: 2000001 B, type: fp32, time: 100 us, low: 90 us, "
            "high: 120 us, repeats: 40, outliers: 0}",
            "  - {operation: divide, traffic: 4000002 B, type: fp32, time: 200 us, low: 90 us, "
            "high: 320 us, repeats: 40, outliers: 3}",
            "all_reduce:",
            "  - {bytes: 4 KiB, time: 60 us, low: 55 us, high: 71 us, repeats: 40, outliers: 2}",
            "  - {bytes: 1 MiB, time: 1 ms, low: 1 ms, high: 2 ms, repeats: 7, outliers: 0}",
            "interference:",
            "  - {bytes: 4 MiB, compute_slowdown: 1.1, communication_slowdown: 0.95}",
            "fits:", "  gemm fp32: {arithmetic: 5.053 GFLOP/s, error: 0.0 %, points: 1}",
            "  streaming: {bandwidth: 20 GB/s, error: 0.0 %, points: 2}",
            "  all_reduce: {latency: 56.31 us, bandwidth: 1.111 GB/s, error: 0.0 %, points: 2}",
            "end: ddpsim.calibration/1"});
}

TEST_CASE("the order of entries does not show", "[tools][calibration_file]") {
  Calibration shuffled = example();
  std::reverse(shuffled.tasks.begin(), shuffled.tasks.end());
  std::reverse(shuffled.all_reduce.begin(), shuffled.all_reduce.end());
  CHECK(calibration_yaml(shuffled) == calibration_yaml(example()));
  Calibration several = example();
  several.ranks = 4;
  for (const Operation operation : {Operation::all_gather, Operation::broadcast})
    for (const int ranks : {2, 4})
      for (const Bytes size : {4 * KiB, 8 * KiB})
        several.collectives.push_back({operation, ranks, size, {30us, 25us, 41us, 4, 2}});
  shuffled = several;
  std::reverse(shuffled.collectives.begin(), shuffled.collectives.end());
  CHECK(calibration_yaml(shuffled) == calibration_yaml(several));
}

TEST_CASE("times survive to the picosecond, sizes to the byte", "[tools][calibration_file]") {
  std::mt19937_64 random(5);
  Calibration calibration;
  // Numbers of every magnitude, up to a quarter of an hour and a tebibyte.
  const auto amount = [&](int bits) {
    return static_cast<std::int64_t>(random() >> (64 - 1 - random() % static_cast<unsigned>(bits)));
  };
  for (std::int64_t i = 1; i <= 2000; ++i) {
    const auto time = [&] { return std::min(Duration{amount(50)}, Duration{15min}); };
    calibration.tasks.push_back(measured(Operation::divide, Gemm{i, amount(40) + 1, 1, 1},
                                         Bytes{amount(40) + 1}, DType::bf16,
                                         {time(), time(), time(), static_cast<int>(i), 0}));
  }
  for (const Duration time :
       {Duration{1}, Duration{999}, Duration{1000}, Duration{1001}, Duration{1ms},
        Duration{1ms} - Duration{1}, Duration{1s}, Duration{1s} + Duration{1}})
    calibration.tasks.push_back(measured(Operation::optimizer, std::nullopt,
                                         Bytes{static_cast<std::int64_t>(calibration.tasks.size())},
                                         DType::fp32, {time, time, time, 1, 0}));
  calibration.interference = {{{1}, 1.0 / 3, 1 + 0x1p-52}};
  CHECK(read_back(calibration) == calibration);
}

TEST_CASE("what all-reduces do to kinds of kernels, by channels, survives",
          "[tools][calibration_file]") {
  Calibration calibration;
  calibration.synchronous = false;
  calibration.interference = {{{1 << 10}, 1.25, 1.5, 1.75, 0},
                              {{1 << 20}, 1.5, 2, 2.5, 0},
                              {{1 << 20}, 1.125, 1, std::nullopt, 1},
                              {{1 << 20}, 1.25, 1.5, 1.75, 4}};
  CHECK(read_back(calibration) == calibration);
}

TEST_CASE("a day survives to a millionth of a millionth", "[tools][calibration_file]") {
  Calibration calibration;
  const Duration day{24h - Duration{1}};
  calibration.tasks = {
      measured(Operation::divide, std::nullopt, {1}, DType::fp32, {day, day, day, 1, 0})};
  CHECK(in_seconds(read_back(calibration).tasks.at(0).time.median) ==
        Approx(in_seconds(day)).epsilon(1e-12));
}

TEST_CASE("any text survives quoting, on one line", "[tools][calibration_file]") {
  std::string every;
  for (char byte = 1; byte < 0x7f; ++byte) every += byte;
  every += '\x7f';
  for (const std::string& text :
       {every, std::string("a: b # c"), std::string("'\"\\\""), std::string("~"),
        std::string("- x"), std::string("{a, b]"), std::string("%TAG &a *b !c"),
        std::string(" end "), std::string("two\nlines\r\n"), std::string("a\0b", 3),
        std::string("\xc2\x85 \xe2\x80\xa8 \xe2\x80\xa9 \xc2\xa0 µs \xf0\x9f\x9a\x80")}) {
    CAPTURE(text);
    Calibration calibration;
    calibration.cpu = calibration.workload = text;
    CHECK(read_back(calibration) == calibration);
    const std::string yaml = calibration_yaml(calibration);
    CHECK(std::none_of(yaml.begin(), yaml.end(),
                       [](char c) { return (c >= 0 && c < 0x20 && c != '\n') || c == 0x7f; }));
    CHECK(lines_of(yaml).size() == lines_of(calibration_yaml(Calibration{})).size() + 2);
  }
}

TEST_CASE("bytes that are no UTF-8 become U+FFFD", "[tools][calibration_file]") {
  const std::string replaced = "\xef\xbf\xbd";
  const auto read = [](const std::string& text) {
    Calibration calibration;
    calibration.link = text;
    return read_back(calibration).link;
  };
  CHECK(read("a\xff z") == "a" + replaced + " z");
  CHECK(read("\xc3") == replaced);                                // cut off
  CHECK(read("\xc0\xaf") == replaced + replaced);                 // longer than needed
  CHECK(read("\xed\xa0\x80") == replaced + replaced + replaced);  // a surrogate
  CHECK(read("\xf5\x80\x80\x80") == replaced + replaced + replaced + replaced);
}

TEST_CASE("a calibration that was written prices a step", "[tools][calibration_file]") {
  const Scratch scratch;
  scratch.write("c.yaml", calibration_yaml(example()));
  scratch.write("s.yaml",
                "workload: {model: resnet18, batch: 2}\ncluster: {calibration: c.yaml}\n");
  const Outcome outcome = ddpsim({"run", "s.yaml", "--json", "-"}, scratch.folder());
  // The buckets are larger than what the example measured; there is no other note.
  CHECK_THAT(outcome.err, Catch::StartsWith("note: the link's table covers all-reduces of 4 KiB"));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.code == 0);
  CHECK(outcome.json()["ranks"] == 2);
}

}  // namespace
}  // namespace ddpsim
