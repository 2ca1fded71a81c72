// What `ddpsim import` reads, where a file of ours is expected.
#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// As all_reduce_perf prints, with its head.
const std::string log_of_nccl_tests =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
    "           8             2     float     sum      -1    44.68    0.00    0.00      0\n"
    "          16             4     float     sum      -1    45.42    0.00    0.00      0\n"
    "# Avg bus bandwidth    : 0.000\n";
const std::string log_of_nccl =
    "node-1:4100:4300 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"
    "node-1:4100:4300 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\n"
    "node-1:4100:4300 [0] NCCL INFO Using network IB\n";
const std::string small_trace =
    "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [],\n  \"traceEvents\": [\n"
    "  {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"ts\": 1.5, \"dur\": "
    "2}\n]}\n";
const std::string results_of_nccl_tests =
    "{\"version\": \"2.17.3\", \"results\": [{\"size\": 8, \"out_of_place\": {\"time\": "
    "44.68}}]}\n";

/// The program's answer in a folder with a scenario and `file`, which holds `content`.
std::string refusal_of_file(const std::string& file, const std::string& content,
                            std::vector<std::string> arguments) {
  const Scratch scratch;
  scratch.write("s.yaml",
                "workload: {model: gpt2, batch: 1, sequence: 64}\n"
                "cluster: {system: dgx-h100, nodes: 4}\ncompare: [flat]\n");
  scratch.write(file, content);
  const Outcome outcome = ddpsim(arguments, scratch.folder());
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(lines_of(outcome.err).size() == 1);
  return outcome.err;
}

}  // namespace

TEST_CASE("a log of nccl-tests in the place of any file is told how to import it",
          "[tools][to_import]") {
  using Words = std::vector<std::string>;
  const auto check_told = [](const std::string& log, const Words& arguments) {
    const std::string said = refusal_of_file("n.log", log, arguments);
    CHECK_THAT(said,
               Catch::Contains("n.log: this is a log of nccl-tests; make a link of it: ddpsim "
                               "import nccl-tests "));
    CHECK_THAT(said, Catch::EndsWith("n.log -o link.yaml\n"));
  };
  for (const Words& arguments : {Words{"run", "s.yaml", "--link", "n.log"},
                                 {"run", "s.yaml", "--cluster", "n.log"},
                                 {"run", "s.yaml", "--set", "cluster.inter_node=n.log"},
                                 {"tune", "s.yaml", "--link", "n.log"},
                                 {"run", "n.log"}})
    check_told(log_of_nccl_tests, arguments);
  // With the lines of NCCL_DEBUG among its own, and what a launcher puts before each line.
  check_told(log_of_nccl + log_of_nccl_tests, {"run", "s.yaml", "--link", "n.log"});
  check_told("[1,0]<stdout>: 8 2 float sum -1 44.68 0.00 0.00 0\n",
             {"run", "s.yaml", "--link", "n.log"});
}

TEST_CASE("so are other files that are imported", "[tools][to_import]") {
  CHECK(refusal_of_file("j.json", results_of_nccl_tests, {"run", "s.yaml", "--link", "./j.json"}) ==
        "ddpsim: ./j.json: this is the JSON of nccl-tests; make a link of it: ddpsim import "
        "nccl-tests ./j.json -o link.yaml\n");
  CHECK(refusal_of_file("j.log", log_of_nccl, {"run", "j.log"}) ==
        "ddpsim: j.log: this is what NCCL prints with NCCL_DEBUG=INFO; make a cluster of it: "
        "ddpsim import nccl-log j.log -o cluster.yaml\n");
  CHECK(refusal_of_file("t.json", small_trace, {"run", "t.json"}) ==
        "ddpsim: t.json: this is a trace of PyTorch's profiler; make a workload profile of it: "
        "ddpsim import torch-trace t.json -o profile.yaml\n");
  CHECK_THAT(
      refusal_of_file("t.json", small_trace, {"run", "s.yaml", "--set", "workload.model=t.json"}),
      Catch::Contains("this is a trace of PyTorch's profiler; make a workload profile"));
  // Too large for a file of ours.
  const std::string padding(9'000'000, ' ');
  CHECK(refusal_of_file("t.json", small_trace + padding, {"run", "t.json"}) ==
        "ddpsim: t.json:1:1: larger than 8 MiB: this is a trace of PyTorch's profiler; make a "
        "workload profile of it: ddpsim import torch-trace t.json -o profile.yaml\n");
  CHECK_THAT(refusal_of_file("t.json.gz", "\x1f\x8b\x08more", {"run", "t.json.gz"}),
             Catch::Contains("this is compressed; if it is a trace of PyTorch's profiler, make"));
}

TEST_CASE("a file of ours that quotes such a log is read as ever", "[tools][to_import]") {
  std::string quoted;
  for (const std::string& line : lines_of(log_of_nccl_tests + log_of_nccl))
    quoted += "# " + line + "\n";
  // The slip below the quotation is told, and nothing of an import.
  CHECK(refusal_of_file("l.yaml", quoted + "- 8\n", {"run", "s.yaml", "--link", "l.yaml"}) ==
        "ddpsim: l.yaml:10:1: expected a mapping of keys to values, such as \"bandwidth: 400 "
        "Gbit/s\"\n");
}

}  // namespace ddpsim
