// Traces of one GPU, which hold computation and no communication; links that one rank measured.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/tools/kineto_trace.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

const std::filesystem::path trace_files = std::filesystem::path(DDPSIM_TEST_DATA) / "traces";
const std::string nothing_crossed = "a log of one rank: nothing crossed a link";

std::string with_replaced(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Without the events whose line holds one of these words.
std::string without_events(const std::string& text, const std::vector<std::string>& words) {
  const std::size_t begin = text.find("[\n", text.find("traceEvents")) + 2,
                    end = text.rfind("\n ]");
  std::string kept;
  for (std::size_t at = begin; at < end;) {
    const std::size_t next = std::min(text.find(",\n", at), end);
    const std::string event = text.substr(at, next - at);
    if (std::none_of(words.begin(), words.end(), [&](const std::string& word) {
          return event.find(word) != std::string::npos;
        }))
      kept += (kept.empty() ? "" : ",\n") + event;
    at = next + 2;
  }
  return text.substr(0, begin) + kept + text.substr(end);
}

Json found_in(const Scratch& scratch, const std::filesystem::path& trace) {
  const Outcome outcome = ddpsim(
      {"import", "torch-trace", trace.string(), "-o", "p.yaml", "--json", "-"}, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

std::string refused_command(const Scratch& scratch, const std::vector<std::string>& words) {
  const Outcome outcome = ddpsim(words, scratch.folder());
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(lines_of(outcome.err).size() == 1);
  return outcome.err;
}

std::string refused_link(const Scratch& scratch, const std::filesystem::path& trace) {
  const std::string said = refused_command(
      scratch, {"import", "torch-trace", trace.string(), "--link-profile", "l.yaml"});
  CHECK(!std::filesystem::exists(scratch.path("l.yaml")));
  return said;
}

TEST_CASE("a trace of one rank is a profile of computation, and no link",
          "[tools][import_one_rank]") {
  const Scratch scratch;
  const std::filesystem::path trace = trace_files / "nccl_one_rank.json";
  const Json found = found_in(scratch, trace);
  CHECK_THAT(found["notes"].dump(), Catch::Contains("one rank: nothing was sent") &&
                                        Catch::Contains("holds no communication"));
  REQUIRE(found["buckets"].size() == 2);
  // 10 + 10 * 1024 + 1024 + 1024 * 1024 elements, and 1024 + 1024 * 512.
  CHECK(found["buckets"][0]["bytes"] == 4 * 1'059'850);
  CHECK(found["buckets"][1]["bytes"] == 4 * 525'312);
  for (const Json& bucket : found["buckets"]) CHECK(!bucket.contains("took_ms"));
  // Nothing that a prediction for several ranks would be held against, or fitted to.
  CHECK_THAT(content_of(scratch.path("p.yaml")),
             !Catch::Contains("measured:") && Catch::Contains("a group of one rank"));
  const Json shown =
      ddpsim({"import", "torch-trace", trace.string(), "--json", "-"}, scratch.folder()).json();
  CHECK(shown["steps"][0]["collectives_ms"] == 0.0);
  CHECK_THAT(refused_link(scratch, trace), Catch::Contains(nothing_crossed));

  scratch.write("s.yaml",
                "workload: {model: p.yaml}\n"
                "cluster: {device: a100-80, ranks_per_node: 8, intra_node: nvlink3}\n"
                "compare: [bucketed]\n");
  const Json run = ddpsim({"run", "s.yaml", "--json", "-"}, scratch.folder()).json();
  REQUIRE(run["results"][0]["buckets"].size() == 2);
  CHECK(run["results"][0]["communication_ms"].get<double>() > 0);
}

TEST_CASE("a real step of one H200 predicts itself, with and without DistributedDataParallel",
          "[tools][import_one_rank]") {
  const Scratch scratch;
  const Json found = found_in(scratch, trace_files / "resnet101_ddp_1xh200_torch211.json.gz");
  // What the trace measures of a step is the profiler's own annotation of it, from where the device
  // has done what was launched before it begins to where it has done what was launched before it
  // ends; the host waits for the device there. ProfilerStep#3 and #4 last 85410.3 and 84652.8 us.
  REQUIRE(found["steps"].size() == 2);
  const double third = 85.4103, fourth = 84.6528;
  CHECK(found["steps"][0]["step_ms"].get<double>() == Approx(third).margin(0.001));
  CHECK(found["steps"][1]["step_ms"].get<double>() == Approx(fourth).margin(0.001));
  // ResNet-101 has 44,549,160 parameters in 314 tensors; the classifier's weight is in the first
  // bucket and its bias, as DistributedDataParallel has it after its first step, in the second.
  std::int64_t elements = 0;
  for (const Json& bucket : found["buckets"]) elements += bucket["elements"].get<std::int64_t>();
  CHECK(elements == 44'549'160);
  CHECK(found["buckets"].size() == 8);
  CHECK_THAT(found["notes"].dump(), Catch::Contains("one rank: nothing was sent"));

  scratch.write("s.yaml",
                "workload: {model: p.yaml}\n"
                "cluster: {device: h200, ranks_per_node: 1}\n"
                "compare: [none, bucketed]\n");
  const Json run = ddpsim({"run", "s.yaml", "--json", "-"}, scratch.folder()).json();
  REQUIRE(run["results"].size() == 2);
  for (const Json& result : run["results"]) {
    CAPTURE(result["strategy"]);
    CHECK(result["step_ms"].get<double>() == Approx((third + fourth) / 2).epsilon(0.03));
  }
}

TEST_CASE("the group that averages gradients decides whether they were sent, not the job",
          "[tools][import_one_rank]") {
  const Scratch scratch;
  const std::string text =
      with_replaced(KinetoTrace({}).text(), "\"world_size\": 2", "\"world_size\": 8");
  const std::string group = "\"Process Group Name\": \"0\"";
  const auto alone =
      scratch.write("alone.json", with_replaced(text, group, group + ", \"Group size\": 1"));
  CHECK_THAT(found_in(scratch, alone)["notes"].dump(), Catch::Contains("nothing was sent"));
  CHECK_THAT(refused_link(scratch, alone), Catch::Contains(nothing_crossed));
  const auto four =
      scratch.write("four.json", with_replaced(text, group, group + ", \"Group size\": 4"));
  const Outcome outcome = ddpsim(
      {"import", "torch-trace", four.string(), "--link-profile", "l.yaml"}, scratch.folder());
  CHECK(outcome.code == 0);
  CHECK_THAT(content_of(scratch.path("l.yaml")), Catch::Contains("ranks: 4\n"));
  // A size that no group has is not said.
  const auto none =
      scratch.write("none.json", with_replaced(text, group, group + ", \"Group size\": -1"));
  CHECK(found_in(scratch, none)["notes"].empty());
}

TEST_CASE("all-reduces of one rank that run, as Gloo's do, are no link either",
          "[tools][import_one_rank]") {
  const Scratch scratch;
  const auto trace = scratch.write(
      "t.json", with_replaced(KinetoTrace({}).text(), "\"world_size\": 2", "\"world_size\": 1"));
  CHECK_THAT(found_in(scratch, trace)["notes"].dump(), Catch::Contains("nothing was sent"));
  CHECK_THAT(content_of(scratch.path("p.yaml")), !Catch::Contains("measured:"));
  CHECK_THAT(refused_link(scratch, trace), Catch::Contains(nothing_crossed));
  // Nor is one among the traces of other ranks.
  const auto two = scratch.write("two.json", KinetoTrace({}).text());
  const std::string said = refused_command(
      scratch, {"import", "torch-trace", two.string(), trace.string(), "--link-profile", "l.yaml"});
  CHECK_THAT(said, Catch::Contains("t.json: " + nothing_crossed));
}

TEST_CASE("all-reduces that the trace does not show are not taken for those of one rank",
          "[tools][import_one_rank]") {
  const Scratch scratch;
  const std::string text = without_events(KinetoTrace({}).text(), {"ncclDevKernel_AllReduce"});
  scratch.write("two.json", text);
  CHECK_THAT(refused_command(scratch, {"import", "torch-trace", "two.json"}),
             Catch::Contains("the trace shows only 0 of its 5 all-reduces run"));
  // An import that does not know of how many ranks its link is says so.
  scratch.write("unsaid.json",
                with_replaced(KinetoTrace({}).text(), ", \"rank\": 0, \"world_size\": 2", ""));
  const Outcome outcome =
      ddpsim({"import", "torch-trace", "unsaid.json", "--link-profile", "l.yaml", "--json", "-"},
             scratch.folder());
  CHECK_THAT(outcome.json()["notes"].dump(),
             Catch::Contains("does not say how many ranks there were"));
}

TEST_CASE("a trace of training without DistributedDataParallel is a profile of computation",
          "[tools][import_one_rank]") {
  const Scratch scratch;
  TraceOptions options;
  options.shapes = true;
  options.copies = false;
  const std::string no_collective =
      without_events(KinetoTrace(options).text(), {"nccl", "c10d", "record_param_comms", "copy"});
  const std::string rank_of_one = with_replaced(no_collective, "\"rank\": 0, \"world_size\": 2",
                                                "\"rank\": 0, \"world_size\": 1");
  const auto plain = scratch.write("t.json", without_events(rank_of_one, {"DistributedData"}));
  const Json found = found_in(scratch, plain);
  CHECK(found["strategy"] == "none");
  CHECK(found["buckets"].empty());
  CHECK_THAT(found["notes"].dump(), Catch::Contains("without DistributedDataParallel"));
  const Scenario scenario =
      read_scenario(scratch.write("s.yaml",
                                  "workload: {model: p.yaml}\n"
                                  "cluster: {device: h100-sxm, ranks_per_node: 2, "
                                  "intra_node: nvlink4}\n"));
  CHECK(scenario.workload.elements() == 25'557'032);  // ResNet-50
  CHECK_THAT(refused_link(scratch, plain), Catch::Contains(nothing_crossed));
  // Under no_sync DistributedDataParallel calls no collective: that is not all of its step.
  const auto no_sync = scratch.write("no_sync.json", rank_of_one);
  CHECK_THAT(refused_command(scratch, {"import", "torch-trace", no_sync.string(), "-o", "q.yaml"}),
             Catch::Contains("no all-reduce of gradients found"));
}

TEST_CASE("a link that one rank measured is refused where several ranks would use it",
          "[tools][import_one_rank]") {
  const Scratch scratch;
  scratch.write("one_rank_link.yaml",
                content_of(std::filesystem::path(DDPSIM_TEST_DATA) / "logs/one_rank_link.yaml") +
                    "latency: 5 us\nbandwidth: 1 GB/s\n");
  const auto scenario = [&](const std::string& cluster) {
    scratch.write("s.yaml",
                  "workload: {model: {family: mlp, widths: [512, 1024, 1024, 10]}, batch: 256}\n"
                  "cluster: {device: generic-cpu, " +
                      cluster + "}\ncompare: [bucketed]\n");
  };
  for (const char* cluster :
       {"ranks_per_node: 8, intra_node: one_rank_link.yaml",
        "nodes: 8, inter_node: one_rank_link.yaml", "ranks: 2, intra_node: one_rank_link.yaml",
        "ranks: 64, inter_node: one_rank_link.yaml, collectives: table"}) {
    CAPTURE(cluster);
    scenario(cluster);
    for (const char* command : {"run", "tune"})
      CHECK_THAT(refused_command(scratch, {command, "s.yaml"}),
                 Catch::StartsWith("ddpsim: s.yaml:2:") &&
                     Catch::Contains("expected all-reduces that two or more ranks measured; "));
  }
  // One rank may name it, and so may who takes nothing of it but latency and bandwidth.
  for (const char* cluster :
       {"ranks_per_node: 1, intra_node: one_rank_link.yaml",
        "ranks_per_node: 8, intra_node: one_rank_link.yaml, collectives: alpha-beta"}) {
    CAPTURE(cluster);
    scenario(cluster);
    CHECK(ddpsim({"run", "s.yaml"}, scratch.folder()).code == 0);
  }
  // Nor does a curve of more ranks go on from it.
  scenario("nodes: 1, inter_node: one_rank_link.yaml");
  const Outcome curve = ddpsim({"run", "s.yaml", "--scaling", "4"}, scratch.folder());
  CHECK(curve.code == 0);
  CHECK_THAT(curve.out, Catch::Contains("all-reduces are of one rank: nothing crossed it"));
}

/// A step of torch's on a CPU without DistributedDataParallel: operators, and an event for each
/// node of each backward pass, of two layers of one size.
std::string accumulated_trace(int passes) {
  std::string events;
  double at = 0;
  const auto add = [&](const std::string& name, double length, const std::string& more = "") {
    events += fmt::format(
        R"(, {{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": 1, "ts": {},
 "dur": {}{}}})",
        name, at, length, more);
  };
  for (int pass = 0; pass < passes; ++pass) {
    for (int layer = 0; layer < 2; ++layer, at += 100) add("aten::linear", 100);
    for (int layer = 0; layer < 2; ++layer) {
      add("autograd::engine::evaluate_function: AddmmBackward0", 190);
      at += 190;
      add("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 10);
      add("torch::autograd::AccumulateGrad", 10,
          R"(, "args": {"Input Dims": [[64, 32]], "Input type": ["float"]})");
      at += 10;
    }
  }
  return fmt::format(
      R"({{"traceEvents": [{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1",
 "pid": 1, "tid": 1, "ts": 0, "dur": {}}}{}]}})",
      at, events);
}

std::size_t parameters_of_profile(const Scratch& scratch) {
  return read_scenario(scratch.path("p.yaml"), {{"cluster", "{device: h100-sxm}"}})
      .workload.parameters.size();
}

TEST_CASE("micro-batches without DistributedDataParallel count each gradient once",
          "[tools][import_trace]") {
  const std::string note =
      "a step has 4 forward passes: all before the last backward pass counts "
      "as forward. The profile is of all of them";
  const Scratch scratch;
  for (const int passes : {1, 4}) {
    CAPTURE(passes);
    const Json found = found_in(scratch, scratch.write("t.json", accumulated_trace(passes)));
    CHECK(found["steps"][0]["forward_ms"].get<double>() == Approx(0.6 * passes - 0.4));
    CHECK(found["steps"][0]["backward_ms"].get<double>() == Approx(0.39));  // the last gradient
    CHECK((found["notes"].dump().find(note) != std::string::npos) == (passes == 4));
    CHECK(parameters_of_profile(scratch) == 2);
  }
  // And so does this program's own trace of a step that sends behind the last pass.
  const Outcome traced =
      ddpsim({"run", first_example, "--set", "compare=[naive]", "--set", "training.micro_batches=4",
              "--set", "training.no_sync=true", "-q", "--trace", "t/"},
             scratch.folder());
  REQUIRE(traced.code == 0);
  CHECK_THAT(found_in(scratch, scratch.path("t/naive/rank0.json.gz"))["notes"].dump(),
             Catch::Contains(note));
  const Json run = ddpsim({"run", first_example, "--set", "compare=[naive]", "--json", "-"}).json();
  CHECK(parameters_of_profile(scratch) == run["results"][0]["collectives"].get<std::size_t>());
}

}  // namespace
}  // namespace ddpsim
