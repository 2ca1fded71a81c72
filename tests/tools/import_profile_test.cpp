// `ddpsim import` itself, and the profiles that need no translation.

#include <catch2/catch.hpp>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"
#include "tests/tools/next_command.hpp"
#include "tests/tools/program.hpp"
#include "tools/import/profile_file.hpp"
#include "tools/report/reports/calibration_file.hpp"

namespace ddpsim {
namespace {

const std::string workload_profile =
    "format: ddpsim.workload/1\n"
    "source: 'a \"test\"'\n"
    "forward: 6 ms\n"
    "backward: 10.000000000001 ms\n"
    "optimizer: 0.5 ms\n"
    "step_spread: 0.0471\n"
    "parameters:\n"
    "  - {name: 0.weight, shape: [64, 32], ready: 9 ms}\n"
    "  - {name: 0.bias, shape: [], dtype: bf16, ready: 9 ms}\n"
    "  - {name: emb, shape: [8, 64], dtype: fp16, sparse: true, ready: 4.000000001 ms}\n"
    "buffers: [{tensors: 4, bytes: 2048}, {tensors: 1, bytes: 8}]\n"
    "arrival: [2, 0, 1]\n"
    "measured:\n"
    "  source: here\n"
    "  calibrate_on: [naive, overlap]\n"
    "  rows:\n"
    "    - {strategy: bucketed, bucket_cap: 25 MiB, step: 20 ms, communication: 3 ms, forward: 6 "
    "ms, "
    "note: 'a: b', set: {cluster.nodes: 2}}\n";

const std::string link_profile =
    "format: ddpsim.link/1\n"
    "source: a log\n"
    "kind: pcie\n"
    "ranks: 2\n"
    "latency: 7.5 us\n"
    "bandwidth: 21.3 GB/s\n"
    "all_reduce:\n"
    "  - {bytes: 4 KiB, time: 58.1 us}\n"
    "  - {bytes: 1000001, time: 323.9 us}\n";

const std::string calibration =
    "format: ddpsim.calibration/1\n"
    "ranks: 2\n"
    "synchronous: true\n"
    "tasks:\n"
    "  - {operation: copy in, traffic: 2 MiB, time: 95 us}\n"
    "all_reduce:\n"
    "  - {bytes: 4 KiB, time: 60 us}\n"
    "end: ddpsim.calibration/1\n";

/// The file that importing this one writes.
std::string rewritten(const Scratch& scratch, const std::string& content, const std::string& word) {
  scratch.write("in.yaml", content);
  const Outcome outcome =
      ddpsim({"import", "torch-profile", "in.yaml", "-o", "out.yaml"}, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains(word));
  return content_of(scratch.path("out.yaml"));
}

TEST_CASE("a profile is written anew as it was, and again the same", "[tools][import_profile]") {
  const Scratch scratch;
  for (const auto& [content, word] : {std::pair{workload_profile, "3 parameters"},
                                      {link_profile, "2 points"},
                                      {calibration, "1 tasks"}}) {
    const std::string once = rewritten(scratch, content, word);
    CHECK(rewritten(scratch, once, word) == once);
  }
}

TEST_CASE("the next command that is told is one for what the file holds",
          "[tools][import_profile]") {
  const Scratch scratch;
  const auto without = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t begin = text.find(from);
    return text.erase(begin, text.find(to, begin) - begin);
  };
  std::string multiplies = calibration;
  multiplies.insert(multiplies.find("  - {operation"),
                    "  - {operation: forward, gemm: [64, 256, 128, 1], traffic: 786432 B, type: "
                    "bf16, time: 83 us}\n");
  const std::string no_all_reduces = without(multiplies, "all_reduce:", "end:"),
                    several_nodes = link_profile + "nodes: 2\n",
                    network = "format: ddpsim.link/1\nkind: ethernet\nbandwidth: 12.5 GB/s\n";
  const std::string run = "ddpsim run SCENARIO ";
  for (const auto& [content, expected] : std::vector<std::pair<std::string, std::string>>{
           {workload_profile, "ddpsim tune out.yaml --device DEVICE --ranks N --link LINK"},
           {link_profile, run + "--link out.yaml"},
           {several_nodes, run + "--nodes 2 --link out.yaml"},
           {network, run + "--nodes N --link out.yaml"},
           {multiplies, run + "--set 'cluster={calibration: out.yaml}'"},
           {calibration, run + "--set 'cluster={calibration: out.yaml, device: DEVICE}'"},
           {no_all_reduces, run + "--set 'cluster={calibration: out.yaml, intra_node: LINK}'"}}) {
    CAPTURE(content);
    scratch.write("in.yaml", content);
    const Outcome imported =
        ddpsim({"import", "torch-profile", "in.yaml", "-o", "out.yaml"}, scratch.folder());
    REQUIRE(imported.code == 0);
    CHECK(next_command(imported) == expected);
    const Outcome followed = follow(next_command(imported), scratch.folder(),
                                    {{"SCENARIO", first_example},
                                     {"DEVICE", "h100-sxm"},
                                     {"--ranks N", "--ranks 2"},
                                     {"--nodes N", "--nodes 2"},
                                     {"LINK", "nvlink4"}});
    CAPTURE(followed.err);
    CHECK(followed.code == 0);
    CHECK_THAT(followed.err, !Catch::Contains("has no effect"));
  }
}

TEST_CASE("a profile that a program wrote is refused if it was cut off at the end of a line",
          "[tools][import_profile]") {
  const Scratch scratch;
  for (const auto& [content, word] :
       {std::pair{workload_profile, "3 parameters"}, {link_profile, "2 points"}}) {
    const std::string whole = rewritten(scratch, content, word);
    CHECK_THAT(whole, Catch::Contains("written_by: ddpsim "));
    std::string part = whole;
    for (;;) {
      part.resize(part.rfind('\n', part.size() - 2) + 1);
      if (part.find("written_by") == std::string::npos) break;
      CAPTURE(part);
      scratch.write("cut.yaml", part);
      const Outcome outcome = ddpsim({"import", "torch-profile", "cut.yaml"}, scratch.folder());
      CHECK(outcome.code == 2);
      CHECK_THAT(outcome.err,
                 Catch::StartsWith("ddpsim: cut.yaml:1:1: ") && Catch::Contains("was cut off"));
    }
  }
}

TEST_CASE("a profile that a program wrote is said to be cut off within a line too",
          "[tools][import_profile]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& content) {
    scratch.write("cut.yaml", content);
    return ddpsim({"import", "torch-profile", "cut.yaml"}, scratch.folder()).err;
  };
  const std::string written = rewritten(scratch, workload_profile, "3 parameters");
  const std::string behind = "shape: [64,";
  REQUIRE(written.find(behind) != std::string::npos);
  const std::string part = written.substr(0, written.find(behind) + behind.size());
  const std::size_t column = part.size() - part.rfind('\n');  // of what would come next, from 1
  const auto line = std::count(part.begin(), part.end(), '\n') + 1;
  CHECK(refused(part) == "ddpsim: cut.yaml:" + std::to_string(line) + ":" + std::to_string(column) +
                             ": the file was cut off here: its last line, \"end: "
                             "ddpsim.workload/1\", is missing; make it again\n");
  const std::string quoted = written.substr(0, written.find("a: b") + 3);
  REQUIRE(quoted.size() > part.size());
  CHECK_THAT(refused(quoted), Catch::Contains("the file was cut off here"));
  CHECK_THAT(refused(written + "more: [1,"),
             Catch::Contains("this file is not as ddpsim wrote it"));
  // What is wrong further up was not cut off, nor is a file with its mark, nor one of a person's.
  CHECK_THAT(refused("written_by: me\n" + workload_profile.substr(0, 26) + "a: b: c\nd: e\n"),
             Catch::Contains("not YAML"));
  const std::string unsealed = written.substr(0, written.rfind("  # ")) + "\n";
  CHECK_THAT(refused(unsealed + "more: [1,"), Catch::Contains("not YAML"));
  CHECK_THAT(refused(workload_profile + "more: [1,"), Catch::Contains("not YAML"));
}

TEST_CASE("a workload profile keeps every value", "[tools][import_profile]") {
  const Scratch scratch;
  rewritten(scratch, workload_profile, "a workload profile");
  const WorkloadProfile before = read_workload_profile(Yaml::load(scratch.path("in.yaml")));
  const WorkloadProfile after = read_workload_profile(Yaml::load(scratch.path("out.yaml")));
  CHECK(after.source == "a \"test\"");
  CHECK(after.forward == before.forward);
  CHECK(after.backward == before.backward);
  CHECK(after.optimizer == before.optimizer);
  CHECK(after.step_spread == 0.0471);
  CHECK(after.arrival == before.arrival);
  REQUIRE(after.buffers.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(after.buffers[i].tensors == before.buffers[i].tensors);
    CHECK(after.buffers[i].size == before.buffers[i].size);
  }
  REQUIRE(after.parameters.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(after.parameters[i].name == before.parameters[i].name);
    CHECK(after.parameters[i].shape == before.parameters[i].shape);
    CHECK(after.parameters[i].dtype == before.parameters[i].dtype);
    CHECK(after.parameters[i].sparse == before.parameters[i].sparse);
    CHECK(after.parameters[i].ready == before.parameters[i].ready);
  }
  REQUIRE(after.measured);
  CHECK(after.measured->calibrate_on == before.measured->calibrate_on);
  REQUIRE(after.measured->rows.size() == 1);
  CHECK(after.measured->rows[0].set == before.measured->rows[0].set);
  CHECK(after.measured->rows[0].note == "a: b");
  CHECK(after.measured->rows[0].bucket_cap == 25 * MiB);
  CHECK(after.measured->rows[0].communication->time ==
        before.measured->rows[0].communication->time);
}

TEST_CASE("a link profile keeps every value", "[tools][import_profile]") {
  const Scratch scratch;
  rewritten(scratch, link_profile, "a link profile");
  const Link after = read_link(Yaml::load(scratch.path("out.yaml")));
  CHECK(after.kind == LinkKind::pcie);
  CHECK(after.table_ranks == 2);
  CHECK(after.latency == std::chrono::nanoseconds{7500});
  CHECK(after.bandwidth == gigabytes_per_second(21.3));
  CHECK(after.all_reduce == AllReduceTable{{Bytes{4096}, std::chrono::nanoseconds{58'100}},
                                           {Bytes{1'000'001}, std::chrono::nanoseconds{323'900}}});
}

TEST_CASE("a damaged profile is refused with its place", "[tools][import_profile]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& content) {
    scratch.write("in.yaml", content);
    const Outcome outcome =
        ddpsim({"import", "torch-profile", "in.yaml", "-o", "out.yaml"}, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(!std::filesystem::exists(scratch.path("out.yaml")));
    return outcome.err;
  };
  CHECK(refused("a: 1\n") == "ddpsim: in.yaml:1:1: missing key \"format\"\n");
  CHECK(refused("format: ddpsim.run/1\n") ==
        "ddpsim: in.yaml:1:9: format: expected ddpsim.workload/1, ddpsim.link/1 or "
        "ddpsim.calibration/1\n");
  CHECK_THAT(refused(workload_profile + "more: 1\n"), Catch::Contains("more: unknown key"));
  CHECK_THAT(refused("format: ddpsim.link/1\n"), Catch::Contains("missing key \"bandwidth\""));
  CHECK_THAT(refused("format: ddpsim.calibration/1\nend: ddpsim.calibration/1\n"),
             Catch::Contains("missing key \"ranks\""));
  CHECK_THAT(refused("format: ddpsim.calibration/1\n"), Catch::Contains("the file was cut off"));
}

TEST_CASE("import asks for a kind it knows and a file", "[tools][import_profile]") {
  const Scratch scratch;
  scratch.write("in.yaml", link_profile);
  const auto refused = [&](const std::vector<std::string>& words) {
    const Outcome outcome = ddpsim(words, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    return outcome.err;
  };
  CHECK_THAT(refused({"import"}), Catch::Contains("needs a kind"));
  CHECK_THAT(refused({"import", "nccl-tests"}), Catch::Contains("needs a kind"));
  CHECK(refused({"import", "nccl-tests", "in.yaml", "in.yaml"}) ==
        "ddpsim: import nccl-tests takes one file, got 2: import each by itself\n");
  CHECK_THAT(refused({"import", "nccl-test", "in.yaml"}),
             Catch::Contains("did you mean \"nccl-tests\"?"));
  CHECK_THAT(refused({"import", "torch-profile", "in.yaml", "--model", "resnet50"}),
             Catch::Contains("--model goes with torch-trace alone"));
  CHECK_THAT(refused({"import", "torch-profile", "in.yaml", "-o", "x", "--json", "x"}),
             Catch::Contains("two results cannot both be written to x"));
  CHECK_THAT(refused({"import", "torch-profile", "in.yaml", "-o", "none/x"}),
             Catch::Contains("none/x: cannot be written"));
}

TEST_CASE("a profile can go to standard output, and quiet prints nothing else",
          "[tools][import_profile]") {
  const Scratch scratch;
  scratch.write("in.yaml", link_profile);
  const Outcome outcome =
      ddpsim({"import", "torch-profile", "in.yaml", "-o", "-"}, scratch.folder());
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith("format: ddpsim.link/1\nwritten_by: ddpsim "));
  CHECK(ddpsim({"import", "torch-profile", "in.yaml", "-o", "x.yaml", "-q"}, scratch.folder())
            .out.empty());
}

}  // namespace
}  // namespace ddpsim
