#include "scenarios/reader/cluster/operations_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/cluster/operation_lines.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace operations_reader_test {
namespace {

using namespace std::chrono_literals;

/// Products of 100 and of 300 rows in fp32, and the gradient of a weight over 100 samples.
const std::string table =
    "format: ddpsim.operations/1\n"                                                      // 1
    "device: a card\n"                                                                   // 2
    "operations:\n"                                                                      // 3
    "  - {gemm: {m: 100, n: 64, k: 32}, read: 21000, written: 25600, time: 10 us}\n"     // 4
    "  - {gemm: {m: 300, n: 64, k: 32}, read: 46600, written: 76800, time: 50 us}\n"     // 5
    "  - {gemm: {m: 64, n: 32, k: 100, along_k: 0}, read: 38400, written: 8192, time: "  // 6
    "70 us}\n";

/// A workload description whose only kernel is this one.
std::string description(const std::string& kernel) {
  return fmt::format(
      "format: ddpsim.workload/2\nbatch: 1\nmarks_recomputed: true\nkernels:\n"
      "  - {{op: x, host: 1 us, {}}}\n"
      "layers:\n  - {{name: a, forward: [0], backward: [0]}}\n"
      "parameters:\n  - {{name: w, shape: [1], layer: 0, after: 0}}\n",
      kernel);
}

std::string product(int m) {
  return fmt::format("kind: gemm, type: fp32, gemm: {{m: {}, n: 64, k: 32}}, read: {}, written: {}",
                     m, 4 * 32 * (m + 64), 4 * m * 64);
}

const std::string norm =
    "kind: memory, type: fp32, pattern: {of: layer_norm, rows: 8192, columns: 1024}, read: "
    "33554432, written: 33554432";

Scenario scenario_of(const Scratch& scratch, const std::string& kernel, const std::string& device) {
  scratch.write("d.yaml", description(kernel));
  return read_scenario(
      scratch.write("s.yaml",
                    fmt::format("workload: {{model: d.yaml}}\ncluster: {{device: {}}}\n", device)),
      {});
}

/// The device's time for the kernel, without the gap behind it.
Duration time_of(const Scratch& scratch, const std::string& kernel, const std::string& device) {
  const Workload workload = scenario_of(scratch, kernel, device).workload;
  return workload.layers.front().forward.front().by_class->work - kernel_gap;
}

const std::string measured = "{base: h200, operations: t.yaml}";
const std::string by_law = "{base: h200, operations: none}";

TEST_CASE("a measured operation goes before the law, between two sizes in proportion",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("t.yaml", table);
  CHECK(time_of(scratch, product(100), measured) == 10us);
  CHECK(time_of(scratch, product(300), measured) == 50us);
  CHECK(time_of(scratch, product(150), measured) == 20us);  // a quarter of the way
  CHECK(time_of(scratch, product(100), by_law) != 10us);
  // Other columns are another class.
  const std::string wider =
      "kind: gemm, type: fp32, gemm: {m: 100, n: 65, k: 32}, read: 1, written: 1";
  CHECK(time_of(scratch, wider, measured) == time_of(scratch, wider, by_law));
}

TEST_CASE("beyond the measured sizes a row goes on as the law does, up to a factor of four",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("t.yaml", table);
  const double law = in_seconds(time_of(scratch, product(1200), by_law)) /
                     in_seconds(time_of(scratch, product(300), by_law));
  CHECK(in_seconds(time_of(scratch, product(1200), measured)) == Approx(50e-6 * law));
  CHECK(time_of(scratch, product(1201), measured) == time_of(scratch, product(1201), by_law));
  CHECK(time_of(scratch, product(24), measured) == time_of(scratch, product(24), by_law));
}

TEST_CASE("a weight's gradient is of a size by the samples that it sums over",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("t.yaml", table +
                              "  - {gemm: {m: 64, n: 32, k: 200, along_k: 0}, read: 76800, "
                              "written: 8192, time: 90 us}\n");
  CHECK(time_of(scratch,
                "kind: gemm, type: fp32, gemm: {m: 64, n: 32, k: 150, along_k: 0}, read: 57600, "
                "written: 8192",
                measured) == 80us);
}

TEST_CASE("a convolution is of a size by its pictures, and of the row's layout",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  const auto conv = [](int pictures, const std::string& more) {
    return fmt::format(
        "conv: {{direction: forward, pictures: {}, channels: 8, pixels: 16, outputs: 8, places: "
        "16, window: 9{}}}, read: {}, written: {}",
        pictures, more, 512 * pictures, 512 * pictures);
  };
  scratch.write("t.yaml",
                fmt::format("format: ddpsim.operations/1\ndevice: a card\noperations:\n  - {{{}, "
                            "type: bf16, time: 100 us}}\n  - {{{}, type: bf16, time: 300 us}}\n",
                            conv(8, ""), conv(24, "")));
  const auto kernel = [&](const std::string& shape) {
    return "kind: conv, type: bf16, gemm: {m: 1, n: 1, k: 1}, " + shape;
  };
  CHECK(time_of(scratch, kernel(conv(16, "")), measured) == 200us);
  const std::string last = kernel(conv(16, ", channels_last: true"));
  CHECK(time_of(scratch, last, measured) == time_of(scratch, last, by_law));
}

TEST_CASE("a row holds the gaps between the kernels of its operation",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("t.yaml", table);
  // Three launches: two gaps of 1.3 us are in the row, and all three are added.
  const Workload workload = scenario_of(scratch, product(300) + ", launches: 3", measured).workload;
  CHECK(workload.layers.front().forward.front().by_class->work == 50us + kernel_gap);
}

TEST_CASE("on a device with another data sheet a base's operations are scaled by the laws",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("t.yaml",
                "format: ddpsim.operations/1\ndevice: a card\noperations:\n"
                "  - {pattern: {of: layer_norm, rows: 8192, columns: 1024}, read: "
                "33554432, written: 33554432, time: 100 us}\n");
  scratch.write("card.yaml", "base: h200\noperations: t.yaml\n");
  const std::string slower = "{base: card.yaml, memory_bandwidth: 2400 GB/s}";
  CHECK(time_of(scratch, norm, "{base: card.yaml, memory: 10 GB}") == 100us);
  const double law =
      in_seconds(time_of(scratch, norm,
                         "{base: card.yaml, memory_bandwidth: 2400 GB/s, operations: none}")) /
      in_seconds(time_of(scratch, norm, by_law));
  CHECK(law > 1.5);
  CHECK(in_seconds(time_of(scratch, norm, slower)) == Approx(100e-6 * law));
  CHECK(in_seconds(time_of(
            scratch, norm,
            "{base: h200, memory_bandwidth: 2400 GB/s, operations: {scaled_from: card.yaml}}")) ==
        Approx(100e-6 * law));
  const std::vector<std::string> notes = scenario_of(scratch, norm, slower).described->notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] ==
        "1 of 1 distinct kernels priced by measured operations of card, scaled to card (changed) "
        "by the "
        "laws");
}

TEST_CASE("whatever of a data sheet differs from the base's, its operations are scaled",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("t.yaml", table);
  scratch.write("card.yaml", "base: h200\noperations: t.yaml\n");
  const auto is_scaled = [&](const std::string& keys) {
    const std::vector<std::string> notes =
        scenario_of(scratch, product(100), "{base: card.yaml, " + keys + "}").described->notes;
    return notes.at(0).find("scaled to card (changed) by the laws") != std::string::npos;
  };
  for (const char* type : {"fp32", "tf32", "bf16", "fp16"}) {
    CAPTURE(type);
    CHECK(is_scaled(fmt::format("peak: {{{}: 33 TFLOP/s}}", type)));
    CHECK(is_scaled(fmt::format("gemm_efficiency: {{{}: 0.5}}", type)));
  }
  CHECK(is_scaled("memory_bandwidth: 4000 GB/s"));
  CHECK(is_scaled("memory_efficiency: 0.7"));
  CHECK(is_scaled("multiprocessors: 100"));
  CHECK(is_scaled("compute_capability: 8.0"));
  CHECK_FALSE(is_scaled("memory: 10 GB"));
  CHECK_FALSE(is_scaled("memory_efficiency: 0.88"));  // as it is
}

TEST_CASE("a note counts kernels that were measured, and those beyond the measured sizes",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("t.yaml", table);
  const auto notes = [&](int rows) {
    return scenario_of(scratch, product(rows), measured).described->notes;
  };
  CHECK(notes(200) ==
        std::vector<std::string>{"1 of 1 distinct kernels priced by measured operations"});
  CHECK(notes(600) == std::vector<std::string>{
                          "1 of 1 distinct kernels priced by measured operations, 1 of them "
                          "beyond the sizes that were measured, by the laws from the nearest"});
  CHECK(notes(5000).empty());
}

TEST_CASE("the H200 of the catalogue has operations, and two others take them scaled",
          "[scenarios][operations_reader]") {
  const Scratch scratch;
  const std::string kernel =
      "kind: gemm, type: bf16, gemm: {m: 8192, n: 1024, k: 4096}, read: 75497472, written: "
      "16777216";
  const auto note = [&](const std::string& device) {
    const auto notes = scenario_of(scratch, kernel, device).described->notes;
    return notes.empty() ? "" : notes.front();
  };
  const std::string one = "1 of 1 distinct kernels priced by measured operations";
  CHECK(note("h200") == one);
  CHECK(note("h100-sxm") == one + " of h200, scaled to h100-sxm by the laws");
  CHECK(note("b200") == one + " of h200, scaled to b200 by the laws");
  CHECK(note("a100-80").empty());
  // The same chip, bound by its tensor cores, of which the catalogue has products reach 0.78 of the
  // peak and not 0.80; what starts a kernel is alike.
  const double slower = in_seconds(time_of(scratch, kernel, "h100-sxm")) /
                        in_seconds(time_of(scratch, kernel, "h200"));
  CHECK(slower > 1);
  CHECK(slower < 0.80 / 0.78);
}

TEST_CASE("a table that is wrong is refused with its place", "[scenarios][operations_reader]") {
  const Scratch scratch;
  scratch.write("d.yaml", description(norm));
  const auto said = [&](const std::string& content, const std::string& device = measured) {
    scratch.write("t.yaml", content);
    return refusal(scratch,
                   fmt::format("workload: {{model: d.yaml}}\ncluster:\n  device: {}\n", device));
  };
  const std::string row = "  - {gemm: {m: 100, n: 64, k: 32}, read: 1, written: 1, time: 1 us}\n";
  CHECK(said(table + row) ==
        "t.yaml:7:5: operations: the same operation of the same size stands above: take one out");
  CHECK(said(table + "  - {read: 1, written: 1, time: 1 us}\n") ==
        "t.yaml:7:5: operations: a row has one of gemm, conv, attention and pattern");
  CHECK_THAT(said(table + "  - {gemm: {m: 1, n: 64, k: 32}, pattern: {of: sum}, read: 1, written: "
                          "1, time: 1 us}\n"),
             Catch::Contains("a row has one of gemm, conv, attention and pattern"));
  CHECK_THAT(said(table + "  - {attention: {batch: 1, heads: 1, queries: 8, keys: 8, size: 8}, "
                          "read: 1, written: 1, time: 1 us}\n"),
             Catch::Contains("say which kernel was measured: implementation: flash"));
  CHECK(said("format: ddpsim.operations/1\noperations: []\n") ==
        "t.yaml:1:1: missing key \"device\"");
  CHECK_THAT(said(table, "{base: h200, operations: u.yaml}"), Catch::Contains("no such file"));
  CHECK_THAT(said(table, "{base: h200, operations: h300}"),
             Catch::StartsWith("s.yaml:3:36: cluster.device.operations: unknown name \"h300\""));
  CHECK(said(table, "{base: a100-80, operations: {scaled_from: l4}}") ==
        "s.yaml:3:53: cluster.device.operations.scaled_from: device l4 has no measured operations "
        "of its own");
  CHECK(said(table, "{base: generic-cpu, operations: t.yaml}") ==
        "s.yaml:3:43: cluster.device.operations: measured operations are of GPUs: a calibration "
        "measures a CPU's kernels");
}

/// Both readers, one row after the other.
void check_alike(const std::filesystem::path& file) {
  const auto quick = operations_on_lines(content_of(file));
  REQUIRE(quick);
  const auto& rows = read_operations(Yaml::load(file)).rows;
  REQUIRE(quick->size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const MeasuredOperation &one = (*quick)[i], &other = rows[i];
    CHECK(place_of(one.kernel) == place_of(other.kernel));
    CHECK(one.kernel.traffic.count == other.kernel.traffic.count);
    CHECK(one.time == other.time);
  }
}

TEST_CASE("rows on a line each are read as YAML, only faster", "[scenarios][operations_reader]") {
  const Scratch scratch;
  check_alike(std::filesystem::path(DDPSIM_SCENARIOS) / "catalogue/operations/h200.yaml");
  const std::string rows =
      "  - {\"conv\": {\"direction\": \"weight\", \"pictures\": 2, \"channels\": 16, \"pixels\": "
      "9, "
      "\"outputs\": 16, \"places\": 9, \"groups\": 4, \"channels_last\": true}, \"type\": "
      "\"fp16\", "
      "\"read\": 5, \"written\": 6, \"time\": \"0.25 us\"}\n"
      "  - {attention: {batch: 2, heads: 3, queries: 4, keys: 5, size: 6, value_size: 7, causal: "
      "true, backward: true, masked: true, implementation: cudnn}, type: bf16, read: 1, written: "
      "2, time: 3 us}\n"
      "  - {pattern: {of: batch_norm, rows: 64, columns: 100, inner: 50, backward: true, "
      "channels_last: true}, read: 1, written: 2, time: 3.125 us}\n"
      "  - {gemm: {m: 1, n: 2, k: 3, batch: 4, along_k: 0}, type: tf32, read: 0, written: 2, time: "
      "1e3 us}\n";
  check_alike(scratch.write("t.yaml", table.substr(0, table.find("  - {gemm: {m: 64")) + rows));
}

TEST_CASE("what stands otherwise, or is wrong, is left to the reader of YAML",
          "[scenarios][operations_reader]") {
  const std::string head = "format: ddpsim.operations/1\ndevice: a card\noperations:\n";
  const auto row = [&](const std::string& text) { return head + "  - " + text + "\n"; };
  const std::string good = "{gemm: {m: 1, n: 2, k: 3}, read: 1, written: 1, time: 1 us}";
  CHECK(operations_on_lines(row(good)));
  for (const char* other :
       {"{gemm: {m: 1, n: 2, k: 3}, read: 1, written: 1, time: 1 ms}",
        "{gemm: {m: 1, n: 2}, read: 1, written: 1, time: 1 us}",
        "{gemm: {m: 1, n: 2, k: 0}, read: 1, written: 1, time: 1 us}",
        "{gemm: {m: 1, n: 2, k: 3, q: 3}, read: 1, written: 1, time: 1 us}",
        "{gemm: {m: 1, m: 1, n: 2, k: 3}, read: 1, written: 1, time: 1 us}",
        "{gemm: {m: 1, n: 2, k: 3}, written: 1, time: 1 us}",
        "{gemm: {m: 1, n: 2, k: 3}, pattern: {of: sum}, read: 1, written: 1, time: 1 us}",
        "{attention: {batch: 1, heads: 1, queries: 1, keys: 1, size: 8}, read: 1, written: 1, "
        "time: 1 us}",
        "{gemm: {m: 1, n: 2, k: 3}, read: 1, written: 1, time: 1 us",
        "{gemm: {m: 1, n: 2, k: 3}, read: 1, written: 1, time: 1 us} # a comment",
        "{gemm: {m: 1, n: 2, k: 3}, read: 1, written: 1, time: -1 us}", "gemm"}) {
    CAPTURE(other);
    CHECK_FALSE(operations_on_lines(row(other)));
  }
  CHECK_FALSE(operations_on_lines(row(good) + "  - " + good + "\n"));  // twice
  CHECK_FALSE(operations_on_lines(head));
  CHECK_FALSE(operations_on_lines("written_by: a program\n" + row(good)));  // cut off
  CHECK_FALSE(operations_on_lines(row(good) + "other: 1\n"));
}

TEST_CASE("a table that a program wrote is whole", "[scenarios][operations_reader]") {
  const Scratch scratch;
  const std::string written = "written_by: ddpsim.measure\n" + table;
  CHECK_THROWS_WITH(read_operations(Yaml::load(scratch.write("t.yaml", written))),
                    Catch::Contains("cut off"));
  const OperationsFile file =
      read_operations(Yaml::load(scratch.write("t.yaml", written + "end: ddpsim.operations/1\n")));
  CHECK(file.device == "a card");
  CHECK(file.rows.size() == 3);
}

}  // namespace
}  // namespace operations_reader_test
}  // namespace ddpsim
