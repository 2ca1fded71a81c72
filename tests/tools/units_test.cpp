// What people are told of a step that is sharded: units, and what each collective waited for.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Catch::Matchers::Contains;

/// llama3-8b on two nodes of eight, or what `more` changes.
std::string of_units(const Scratch& scratch, const std::string& training,
                     const std::string& compare, const std::string& more = "") {
  return scratch
      .write("units.yaml",
             "workload: {model: llama3-8b, batch: 1, sequence: 4096, compute: bf16}\n"
             "cluster: {system: dgx-h100, nodes: 2" +
                 more + "}\ntraining: {strategy: fsdp" + training + "}\n" + compare)
      .string();
}

Outcome done(std::vector<std::string> words) {
  const Outcome outcome = ddpsim(std::move(words));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

/// The result of a strategy in `run --json`.
Json result_of(const std::string& strategy, std::vector<std::string> words) {
  words.insert(words.begin(), "run");
  words.insert(words.end(), {"-q", "--json", "-"});
  const Json results = done(std::move(words)).json()["results"];
  for (const Json& each : results)
    if (each["strategy"] == strategy) return each;
  FAIL("no result of " << strategy);
  return {};
}

/// [kind][cause] How much each cause accounts for, of all units.
std::map<std::string, std::map<std::string, double>> causes_of(const Json& result) {
  std::map<std::string, std::map<std::string, double>> sums;
  for (const Json& unit : result["why"]["units"])
    for (const Json& sent : unit["collectives"])
      for (const auto& [cause, ms] : sent["exposed_by_ms"].items())
        sums[sent["kind"].get<std::string>()][cause] += ms.get<double>();
  return sums;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

TEST_CASE("a unit is a row: its gathers, its reduce-scatter, and no word of buckets",
          "[tools][units]") {
  const Scratch scratch;
  const std::string file = of_units(scratch, "", "compare: [fsdp]\n");
  const std::string listed = done({"schedule", file}).out;
  CHECK_THAT(listed, Contains("forward gather") && Contains("backward gather") &&
                         Contains("reduce-scatter") && Contains("the root") &&
                         Contains("model.layers.31"));
  const std::string why = done({"run", file, "--why"}).out;
  CHECK_THAT(why,
             Contains(" of 33 units are exposed, ") && Contains("itself") && Contains("hidden, "));
  const std::string page = scratch.path("page.html").string();
  done({"run", file, "-q", "--report", page});
  CHECK_THAT(content_of(page), Contains("What exposes each unit") && Contains("packed gradients") &&
                                   !Contains("A bucket's bar"));
  for (const std::string& told : {listed, why}) {
    CHECK_THAT(lower(told), !Contains("bucket"));
    CHECK_THAT(lower(told), !Contains("comm hook"));
  }
}

TEST_CASE("JSON has each unit's collectives, whose exposed times sum to those of the units",
          "[tools][units]") {
  const Scratch scratch;
  const std::string file = of_units(scratch, "", "compare: [bucketed, fsdp]\n");
  const Json fsdp = result_of("fsdp", {file, "--why"}),
             ddp = result_of("bucketed", {file, "--why"});
  CHECK(fsdp["buckets"].empty());
  CHECK(!ddp.contains("units"));
  REQUIRE(fsdp["units"].size() == 33);
  CHECK(fsdp["units"][0]["unit"] == "the root");
  CHECK(fsdp["units"][0]["collectives"].size() == 2);  // it is kept: no second gather
  double all = 0;
  std::int64_t through_port = 0;
  for (const Json& unit : fsdp["why"]["units"]) {
    double sum = 0;
    for (const Json& sent : unit["collectives"]) {
      double by = 0;
      for (const auto& [cause, ms] : sent["exposed_by_ms"].items()) by += ms.get<double>();
      CHECK(by == Approx(sent["exposed_ms"].get<double>()).margin(1e-9));
      sum += by;
      through_port += sent["port_bytes"].get<std::int64_t>();
    }
    CHECK(sum == Approx(unit["exposed_ms"].get<double>()).margin(1e-9));
    all += sum;
  }
  CHECK(all == Approx(fsdp["why"]["exposed_in_buckets_ms"].get<double>()));
  // 15 sixteenths of each whole are sent: a block's 218,112,000 parameters in fp32.
  const Json& block = fsdp["units"][1]["collectives"];
  REQUIRE(block.size() == 3);
  for (const Json& sent : block) CHECK(sent["port_bytes"] == std::int64_t{15} * 872'448'000 / 16);
  CHECK(fsdp["wire_bytes"] == through_port);
  CHECK(fsdp["port_bytes"] == through_port);
  // DDP sends 2 (W - 1) / W of all gradients, and hands each over once.
  CHECK(ddp["port_bytes"].get<double>() == Approx(2 * 15.0 / 16 * ddp["wire_bytes"].get<double>()));
}

TEST_CASE("of each collective --why says what it waited for", "[tools][units]") {
  const Scratch scratch;
  const auto causes = [&](const std::string& training, const std::string& more = "") {
    return causes_of(
        result_of("fsdp", {of_units(scratch, training, "compare: [fsdp]\n", more), "--why"}));
  };
  // Over a slow network gathers queue up in the communicator, and packing waits for buffers.
  const std::string slow = ", inter_node: ethernet-100g";
  auto found = causes("", slow);
  CHECK(found["forward_gather"]["previous"] > 0);
  CHECK(found["reduction"]["input_buffer"] > 0);
  CHECK(found["backward_gather"]["previous"] > 0);
  CHECK(!found["reduction"].contains("copy_out"));
  CHECK(!found["forward_gather"].contains("gradients"));
  // With memory for all inputs nothing waits for it.
  found = causes(", reduce_scatter_max_input_buffers: 64", slow);
  CHECK(found["reduction"]["input_buffer"] == 0);
  // The root's gather has nothing to hide behind: it is needed at once.
  found = causes("");
  CHECK(found["forward_gather"]["itself"] > 0);
  CHECK(found["reduction"]["gradients"] > 0);
  // Where kernels hide all of it, and all ranks are alike, the next gather waits for a copy-out.
  const Json even =
      result_of("fsdp", {of_units(scratch, "", "compare: [fsdp]\n", ", skew: 0 %"), "--why"});
  const auto held_by = [&](std::size_t unit, std::size_t sent) {
    return even["why"]["units"][unit]["collectives"][sent]["held_by"];
  };
  CHECK(held_by(10, 0) == "copy_out");
  CHECK(held_by(10, 1) == "previous");  // a reduce-scatter, in the same communicator
  CHECK(even["why"]["units"][10]["exposed_ms"] == 0);
  // A host that launches slowly holds up what is sent.
  found = causes("", ", launch: 400 us");
  CHECK(found["forward_gather"]["launch"] > 1);
  // A slower rank is waited for.
  found = causes("", ", exceptions: [{rank: 9, compute: 1.5}]");
  CHECK(found["reduction"]["slowest_rank"] > 0);
}

TEST_CASE("replicas have an all-reduce each, behind the reduce-scatter", "[tools][units]") {
  const Scratch scratch;
  const std::string file =
      of_units(scratch, ", replicate: 2, micro_batches: 2", "compare: [fsdp]\n");
  const Json fsdp = result_of("fsdp", {file, "--why"});
  const Json& sent = fsdp["why"]["units"][5]["collectives"];
  REQUIRE(sent.size() == 4);
  CHECK(sent[3]["kind"] == "replica_sum");
  CHECK(sent[3]["operation"] == "all-reduce");
  CHECK(sent[3]["start_ms"] >= sent[2]["end_ms"]);
  CHECK(sent[0]["count"] == 2);  // each micro-batch gathers, and reduces
  CHECK(sent[2]["count"] == 2);
  CHECK(sent[0]["port_bytes"] == std::int64_t{7} * 872'448'000 / 8);  // among eight ranks
  CHECK(sent[3]["port_bytes"] == 872'448'000 / 8);                    // 2 (2 - 1) / 2 of an eighth
}

TEST_CASE("replicas that do not divide the ranks are refused where they are written",
          "[tools][units]") {
  const Scratch scratch;
  const Outcome outcome = ddpsim({"run", of_units(scratch, ", replicate: 3", "compare: [fsdp]\n")});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains("units.yaml:3:39: training.replicate: 16 ranks cannot be 3 "
                                   "replicas of as many ranks each: "
                                   "expected a divisor of 16, such as 2, 4 or 8"));
  const Outcome joined = ddpsim({"run", of_units(scratch, ", join: true", "compare: [fsdp]\n")});
  CHECK(joined.code == 2);
  CHECK_THAT(joined.err, Contains("units.yaml:3:34: training.join: fully_shard has no join()"));
}

TEST_CASE("a scenario whose strategy shards has its step without `compare`", "[tools][units]") {
  const Scratch scratch;
  const std::string file = of_units(scratch, "", "");
  CHECK(result_of("fsdp", {file})["units"].size() == 33);
  const std::string ddp =
      scratch
          .write("ddp.yaml",
                 "workload: {model: gpt2, batch: 8, sequence: 1024}\ncluster: dgx-h100\n")
          .string();
  CHECK(done({"run", ddp, "-q", "--json", "-"}).json()["results"].size() == 4);
  const Outcome set = done({"run", ddp, "--set", "training.strategy=fsdp"});
  CHECK_THAT(set.out, Contains("\nfsdp  "));
  CHECK_THAT(set.err, !Contains("changes nothing"));
}

TEST_CASE("keys and rows that nothing compared uses are noted", "[tools][units]") {
  const Scratch scratch;
  const std::string file =
      of_units(scratch, ", bucket_cap: 10 MiB, static_graph: true", "compare: [none, fsdp]\n");
  CHECK_THAT(done({"run", file}).err,
             Contains("training: bucket_cap and static_graph without effect here: of "
                      "DistributedDataParallel, and `compare` has no bucketed"));
  CHECK_THAT(done({"run", file, "--set", "compare=[bucketed, fsdp]"}).err,
             !Contains("without effect"));
  const std::string shards =
      of_units(scratch, ", units: [\"model.layers.*\"], replicate: 2", "compare: [bucketed]\n");
  CHECK_THAT(done({"run", shards}).err,
             Contains("training: units and replicate without effect here: of fsdp"));
  const std::string parts =
      of_units(scratch, ", zero1: {variant: deepspeed}, zero2: {overlap_comm: true}",
               "compare: [fsdp, zero2]\n");
  CHECK_THAT(done({"run", parts}).err,
             Contains("training: zero1 without effect here: `compare` has no strategy of that "
                      "name"));
  CHECK_THAT(done({"run", parts, "--set", "compare=[zero1, zero2]"}).err,
             !Contains("without effect"));
  const std::string sums =
      of_units(scratch, ", mp_policy: {reduce_dtype: fp32}", "compare: [fsdp, zero2]\n");
  CHECK_THAT(done({"run", sums}).err, !Contains("without effect"));
  CHECK_THAT(done({"run", sums, "--set", "compare=[zero2]"}).err,
             Contains("training: mp_policy.reduce_dtype without effect here"));
  const auto told_apart = [&](const std::string& types, const char* compared) {
    const std::string both =
        of_units(scratch, ", mp_policy: {" + types + "}", "compare: [fsdp, zero2]\n");
    return done({"run", both, "--set", fmt::format("compare={}", compared)})
               .err.find(
                   "reduce_dtype is of fsdp alone: gradients of DeepSpeed and Megatron-LM "
                   "travel in bf16 here, those of fsdp in fp32") != std::string::npos;
  };
  CHECK(told_apart("param_dtype: bf16, reduce_dtype: fp32", "[fsdp, zero2]"));
  CHECK(!told_apart("param_dtype: bf16, reduce_dtype: fp32", "[bucketed, fsdp]"));
  CHECK(!told_apart("param_dtype: bf16, reduce_dtype: bf16", "[fsdp, zero2]"));
  const std::string rows =
      of_units(scratch, "",
               "compare: [fsdp]\n"
               "measured: {rows: [{strategy: fsdp, step: 600 ms, communication: 250 ms}]}\n");
  CHECK_THAT(done({"run", rows}).err,
             Contains("measured.rows: the communication of a row of a sharded step is fitted to "
                      "nothing"));
}

TEST_CASE("units and types that are not there get a hint", "[tools][units]") {
  const Scratch scratch;
  const Outcome units =
      ddpsim({"run", of_units(scratch, ", units: [\"layers.*\"]", "compare: [fsdp]\n")});
  CHECK(units.code == 2);
  CHECK_THAT(units.err, Contains("llama3-8b has no module \"layers.*\" with parameters; it has "
                                 "model.embed_tokens, model.layers.*, model.norm, lm_head"));
  for (const auto& [torch, same] : std::map<std::string, std::string>{
           {"bfloat16", "bf16"}, {"torch.float16", "fp16"}, {"float32", "fp32"}}) {
    const Outcome type =
        ddpsim({"run", of_units(scratch, ", mp_policy: {param_dtype: " + torch + "}",
                                "compare: [fsdp]\n")});
    CHECK(type.code == 2);
    CHECK_THAT(type.err, Contains("units.yaml:3:") &&
                             Contains(torch + " is " + same + " here: write " + same));
  }
  for (const char* word : {"fsdp", "hsdp", "fsdp2", "fully_shard", "zero", "unit", "all-gather"})
    CHECK_THAT(done({"explain", word}).out, Contains("ha") || Contains("paramet"));
}

TEST_CASE("init writes a sharded scenario, and says where one is needed", "[tools][units][init]") {
  const Scratch scratch;
  const std::string file = scratch.path("started.yaml").string();
  const Outcome ddp = done({"init", "--model", "llama3-8b", "--cluster", "dgx-h100", file});
  CHECK_THAT(ddp.err, Contains("sharded among the ranks it does: add --strategy fsdp"));
  const Outcome sharded = done({"init", "--model", "llama3-8b", "--cluster", "dgx-h100",
                                "--strategy", "fsdp", "--force", file});
  CHECK_THAT(sharded.err, !Contains("does not fit"));
  const std::string text = content_of(file);
  CHECK_THAT(text, Contains("strategy: fsdp") && Contains("mp_policy: {param_dtype: bf16") &&
                       Contains("compare: [none, bucketed, fsdp]"));
  const Json fsdp = result_of("fsdp", {file});
  CHECK(fsdp["fits_device"] == true);
  const Outcome wrong = ddpsim({"init", "--strategy", "zero9", "-"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Contains("--strategy zero9: expected one of bucketed, "));
}

TEST_CASE("a page is about the scenario's strategy where that shards", "[tools][units]") {
  const Scratch scratch;
  const std::string page = scratch.path("page.html").string();
  done({"run", of_units(scratch, "", "compare: [bucketed, fsdp]\n"), "-q", "--report", page});
  CHECK_THAT(content_of(page), Contains("all ranks together: fsdp on 16 ranks") &&
                                   Contains("What exposes each bucket or unit"));
}

TEST_CASE("under drawn paces a sharded step is compared with a step that is as `run` has it",
          "[tools][units]") {
  const Scratch scratch;
  const std::string file =
      of_units(scratch, ", mp_policy: {param_dtype: bf16}", "compare: [fsdp]\n", ", jitter: 0.1%");
  const Json fsdp = result_of("fsdp", {file, "--seeds", "5"});
  CHECK(fsdp["seeds"]["exposed_median_ms"].get<double>() ==
        Approx(fsdp["exposed_ms"].get<double>()).epsilon(0.1));
}

TEST_CASE("bands of sharded steps are of published sharded steps", "[tools][units]") {
  const Scratch scratch;
  const std::string fsdp = done({"run", of_units(scratch, "", "compare: [fsdp]\n")}).out;
  CHECK_THAT(fsdp, Contains("sharded steps of this kind") && Contains("steps take: fsdp ") &&
                       !Contains("Predictions of this kind"));
  const std::string all = done({"run", of_units(scratch, "", "compare: [bucketed, zero1]\n")}).out;
  CHECK_THAT(all, Contains("In proportion, steps take: bucketed") && !Contains("sharded steps") &&
                      Contains("There is no band for zero1: how far these predictions were off"));
}

TEST_CASE("traces name what fully_shard does as PyTorch's profiler, each stream on its own row",
          "[tools][units][trace]") {
  const Scratch scratch;
  const std::string trace = scratch.path("trace.json").string();
  const std::string file = of_units(scratch, ", replicate: 2", "compare: [fsdp]\n");
  done({"run", file, "-q", "--trace", trace});
  const Json events = Json::parse(content_of(trace))["traceEvents"];
  std::map<std::string, std::set<int>> rows;  // of kernels, by the beginning of their names
  std::map<std::string, std::set<std::string>> ranges;
  std::set<std::string> groups;
  for (const Json& event : events) {
    const std::string name = event.value("name", ""), category = event.value("cat", "");
    if (category == "kernel" && name.starts_with("nccl")) {
      rows[name.substr(0, name.find('_', 15))].insert(event["tid"].get<int>());
      groups.insert(event["args"]["Process Group Description"].get<std::string>());
      CHECK(event["args"].contains("unit"));
    }
    if (name.starts_with("FSDP::")) ranges[category].insert(name);
    if (name.starts_with("fsdp::")) ranges[category].insert(name);
  }
  CHECK(rows["ncclDevKernel_AllGather"].size() == 1);
  CHECK(rows["ncclDevKernel_ReduceScatter"].size() == 1);
  CHECK(rows["ncclDevKernel_AllReduce"].size() == 1);
  std::set<int> all;
  for (const auto& each : rows) all.insert(each.second.begin(), each.second.end());
  CHECK(all.size() == 3);
  CHECK(groups == std::set<std::string>{"mesh_replicate", "mesh_shard"});
  for (const char* range :
       {"FSDP::pre_forward", "FSDP::pre_forward (model.layers.3)",
        "FSDP::all_gather (model.layers.3)", "FSDP::all_gather_copy_out (model.layers.3)",
        "FSDP::pre_backward (model.layers.3)", "FSDP::post_backward_reduce (model.layers.3)"})
    CHECK(ranges["user_annotation"].contains(range));
  CHECK(ranges["gpu_user_annotation"].contains("FSDP::all_gather (model.layers.3)"));
  for (const char* operation :
       {"fsdp::all_gather_copy_in", "fsdp::split_with_sizes_copy", "fsdp::chunk_cat"})
    CHECK(ranges["cpu_op"].contains(operation));
}

}  // namespace ddpsim
