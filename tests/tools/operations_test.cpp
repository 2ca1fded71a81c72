#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace operations_test {
namespace {

/// One product, so long that its time is the step's.
const std::string described =
    "format: ddpsim.workload/2\nbatch: 1\nmarks_recomputed: true\nkernels:\n"
    "  - {op: mm, kind: gemm, type: bf16, gemm: {m: 8192, n: 1024, k: 4096}, host: 1 us, read: "
    "75497472, written: 16777216}\n"
    "layers: [{name: a, forward: [0], backward: [0]}]\n"
    "parameters: [{name: w, shape: [1], layer: 0, after: 0}]\n";
const std::string table =
    "format: ddpsim.operations/1\ndevice: my card\noperations:\n"
    "  - {gemm: {m: 4096, n: 1024, k: 4096}, type: bf16, read: 1, written: 1, time: 40 ms}\n";

Outcome run_on(const Scratch& scratch, const std::string& device) {
  scratch.write("d.yaml", described);
  scratch.write("s.yaml",
                "workload: {model: d.yaml}\ncluster: {device: " + device + "}\ncompare: [none]\n");
  return execute({DDPSIM_PROGRAM, "run", "s.yaml", "--json", "-"}, scratch.folder());
}

TEST_CASE("run prices a description by measured operations and says so", "[tools][operations]") {
  const Scratch scratch;
  scratch.write("my.yaml", table +
                               "  - {gemm: {m: 12288, n: 1024, k: 4096}, type: bf16, read: 1, "
                               "written: 1, time: 80 ms}\n");
  const Outcome outcome = run_on(scratch, "{base: h200, operations: my.yaml}");
  REQUIRE(outcome.code == 0);
  // Half way between 40 and 80 ms.
  CHECK(outcome.json()["results"][0]["forward_ms"].get<double>() == Approx(60).epsilon(0.001));
  CHECK(outcome.json()["described"]["notes"] ==
        Json{"1 of 1 distinct kernels priced by measured operations"});
  const Outcome by_law = run_on(scratch, "{base: h200, operations: none}");
  REQUIRE(by_law.code == 0);
  CHECK(by_law.json()["results"][0]["forward_ms"].get<double>() < 1);
  CHECK(by_law.json()["described"]["notes"].empty());
}

TEST_CASE("run says how many kernels lie beyond the measured sizes", "[tools][operations]") {
  const Scratch scratch;
  scratch.write("my.yaml", table);
  const Outcome outcome = run_on(scratch, "{base: h200, operations: my.yaml}");
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.json()["described"]["notes"][0].get<std::string>(),
             Catch::Contains("1 of them beyond the sizes that were measured"));
}

TEST_CASE("operations of another device that are taken as they are get a note",
          "[tools][operations]") {
  const Scratch scratch;
  const auto noted = [&](const std::string& device, const std::string& measured) {
    scratch.write("my.yaml", "format: ddpsim.operations/1\ndevice: " + measured + "\n" +
                                 table.substr(table.find("operations:\n")));
    const Outcome outcome = run_on(scratch, device);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.err;
  };
  CHECK_THAT(noted("{base: a100-40, operations: h200}", "my card"),
             Catch::Contains("note: cluster.device.operations: h200 was measured on NVIDIA H200, "
                             "and its times are taken as those of a100-40 (changed); operations: "
                             "{scaled_from: h200} scales them\n"));
  CHECK_THAT(noted("{base: a100-40, operations: my.yaml}", "NVIDIA H100 80GB HBM3"),
             Catch::Contains("my.yaml was measured on NVIDIA H100 80GB HBM3, and its times are "
                             "taken as those of a100-40 (changed); operations: {scaled_from: FILE} "
                             "scales them, FILE being a device with these operations\n"));
  const std::string what = "cluster.device.operations";
  CHECK_THAT(noted("{base: a100-40, operations: my.yaml}", "NVIDIA A100-SXM4-80GB"),
             !Catch::Contains(what));
  // Nobody can tell where the catalogue does not have the card.
  CHECK_THAT(noted("{base: a100-40, operations: my.yaml}", "my card"), !Catch::Contains(what));
  for (const char* device :
       {"h200", "h100-sxm", "{base: h200, memory_bandwidth: 4000 GB/s}",
        "{base: a100-40, operations: {scaled_from: h200}}", "{base: a100-40, operations: none}"})
    CHECK_THAT(noted(device, "my card"), !Catch::Contains(what));
  // Where a device is written out, its memory tells whether it may be the one that was measured.
  const auto own = [](const std::string& memory) {
    return "{compute_capability: 9.0, multiprocessors: 132, memory: 80 GiB, memory_bandwidth: " +
           memory + ", peak: {fp32: 60 TFLOP/s, bf16: 900 TFLOP/s}, operations: h200}";
  };
  CHECK_THAT(noted(own("4.6 TB/s"), "my card"), !Catch::Contains(what));
  CHECK_THAT(noted(own("2 TB/s"), "my card"),
             Catch::Contains("its times are taken as those of the scenario's own device; "));
}

TEST_CASE("a cluster's file beside the scenario gets the notes of one in the current folder",
          "[tools][operations]") {
  const Scratch scratch;
  const std::filesystem::path folder = scratch.path("sub");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "d.yaml") << described;
  std::ofstream(folder / "s.yaml") << "workload: {model: d.yaml}\ncompare: [none]\n";
  std::ofstream(folder / "c.yaml") << "device: {base: a100-40, operations: h200}\n";
  const auto run = [&](const std::string& file, const std::string& cluster) {
    return execute({DDPSIM_PROGRAM, "run", file, "--cluster", cluster}, scratch.folder());
  };
  const Outcome here = run("sub/s.yaml", "sub/c.yaml"), beside = run("sub/s.yaml", "c.yaml");
  REQUIRE(here.code == 0);
  CHECK_THAT(here.err, Catch::Contains("h200 was measured on NVIDIA H200"));
  CHECK(beside.out == here.out);
  CHECK(beside.err == here.err);
  // A description that stands for a scenario gets the note too.
  const Outcome bare = run("sub/d.yaml", "c.yaml");
  CHECK(bare.code == 0);
  CHECK_THAT(bare.err, Catch::Contains("h200 was measured on NVIDIA H200"));
}

TEST_CASE("operations that are set on a ready cluster's device get the same note",
          "[tools][operations]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: gpt2, batch: 2, sequence: 256}\ncluster: {system: "
                 "dgx-a100}\ncompare: [none]\n")
          .string();
  const std::string note = "cluster.device.operations: h200 was measured on NVIDIA H200";
  CHECK_THAT(ddpsim({"run", file, "--set", "cluster.device.operations=h200"}).err,
             Catch::Contains(note));
  CHECK_THAT(ddpsim({"run", file}).err, !Catch::Contains("cluster.device.operations"));
}

TEST_CASE("a host's factor lengthens what the host bounds", "[tools][operations]") {
  const Scratch scratch;
  // Two products, whose calls take the host 165 us each in a step (1.65 times 100 us), longer than
  // the device does: the second begins when its own call is made.
  std::string slow = described;
  slow.replace(slow.find("host: 1 us"), 10, "host: 100 us");
  slow.replace(slow.find("forward: [0]"), 12, "forward: [0, 0]");
  const auto forward = [&](const std::string& host) {
    scratch.write("d.yaml", slow);
    scratch.write("s.yaml", "workload: {model: d.yaml}\ncluster: {device: h200" + host +
                                "}\ncompare: [none]\n");
    const Outcome outcome =
        execute({DDPSIM_PROGRAM, "run", "s.yaml", "--json", "-"}, scratch.folder());
    REQUIRE(outcome.code == 0);
    return outcome.json()["results"][0]["forward_ms"].get<double>();
  };
  CHECK(forward(", host: {factor: 4}") - forward("") == Approx(3 * 0.15).margin(1e-4));
  CHECK(forward(", host: reference") == forward(""));
}

TEST_CASE("a table that is wrong is one line and exit code 2", "[tools][operations]") {
  const Scratch scratch;
  scratch.write("my.yaml", table + "  - {gemm: {m: 1, n: 1, k: 1}, read: 1, written: 1}\n");
  const Outcome outcome = run_on(scratch, "{base: h200, operations: my.yaml}");
  CHECK(outcome.code == 2);
  CHECK(outcome.err == "ddpsim: my.yaml:5:5: operations: missing key \"time\"\n");
}

}  // namespace
}  // namespace operations_test
}  // namespace ddpsim
