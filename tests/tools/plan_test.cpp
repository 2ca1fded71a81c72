// `ddpsim plan`: what is listed first is the quickest of what fits, and what does not fit is told.

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/base/quantity.hpp"
#include "tests/tools/answers.hpp"
#include "tools/report/writers/csv.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

/// GPT-2 XL on nodes of eight H100, of which 48 samples take more than the 80 GB.
std::string large_gpt(const Scratch& scratch, const std::string& training = "{}",
                      const std::string& more_of_cluster = "") {
  return scratch
      .write("plan.yaml",
             "workload: {model: gpt2-xl, batch: 4, sequence: 1024, compute: bf16, optimizer: "
             "adamw-fused}\ncluster: {system: dgx-h100, nodes: 2" +
                 more_of_cluster + "}\ntraining: " + training + "\n")
      .string();
}

/// The answer of `plan` with these words behind the file's name.
Json planned(const std::string& file, const Words& more) {
  Words words{"plan", file, "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return json_of(words);
}

bool was_simulated(const Json& candidate) {
  return !candidate["step_ms"].is_null();
}

/// What `run` answers of the candidate.
Json run_answer_of(const std::string& file, const Json& candidate) {
  Words words{"run", file, "-q", "--set",
              "compare=[" + candidate["strategy"].get<std::string>() + "]"};
  for (const auto& [key, value] : candidate["set"].items())
    words.insert(words.end(), {"--set", key + "=" + value.get<std::string>()});
  return json_of(words);
}
/// The candidate's step as `run` predicts it.
Json run_of(const std::string& file, const Json& candidate) {
  return run_answer_of(file, candidate)["results"][0];
}

/// The lines from the one that begins so up to a blank one.
Words block_of(const std::string& text, const std::string& begin) {
  Words block;
  for (const std::string& line : lines_of(text)) {
    if (!block.empty() && line.empty()) break;
    if (!block.empty() || line.starts_with(begin)) block.push_back(line);
  }
  return block;
}

/// With four digits of the higher end, at least.
std::string band_in_words(double low, double high) {
  if (high >= 1000) return fmt::format("{:.0f} to {:.0f}", low, high);
  if (high >= 100) return fmt::format("{:.1f} to {:.1f}", low, high);
  return fmt::format("{:.2f} to {:.2f}", low, high);
}

}  // namespace

TEST_CASE("a plan's candidates are the steps that run predicts, the quickest first",
          "[tools][plan]") {
  const Scratch scratch;
  const std::string file = large_gpt(scratch);
  const Json plan = planned(file, {"--gpus", "4,16", "--batches", "1,4"});
  CHECK(plan["format"] == "ddpsim.plan/1");
  CHECK(plan["sorted_by"] == "tokens_per_second");
  // Two batches of DDP, and of fsdp with and without resharding: each with autocast, with mixed
  // precision and, on two nodes, with a replica on each; all with and without checkpoints.
  REQUIRE(plan["candidates"].size() == 2 * 2 * (5 + 7));
  double last = std::numeric_limits<double>::max();
  int place = 0;
  std::set<std::string> different;
  for (const Json& candidate : plan["candidates"]) {
    CAPTURE(candidate.dump());
    different.insert(candidate["set"].dump());
    REQUIRE(was_simulated(candidate));
    CHECK(candidate["place"] == ++place);
    CHECK(candidate["tokens_per_second"].get<double>() <= last);
    last = candidate["tokens_per_second"].get<double>();
    const Json run = run_of(file, candidate);
    for (const char* key :
         {"label", "step_ms", "exposed_ms", "communication_ms", "step_low_ms", "step_high_ms",
          "bound", "tokens_per_second", "mfu", "fits_device", "device_hours_per_billion_tokens"}) {
      CAPTURE(key);
      CHECK(candidate[key] == run[key]);
    }
    CHECK(candidate["peak_memory_bytes"] == run["memory"]["peak_bytes"]);
    CHECK(candidate["peak_of_device"].get<double>() ==
          Approx(run["memory"]["peak_bytes"].get<double>() /
                 run["memory"]["device_bytes"].get<double>()));
    CHECK(candidate["fits_device"] == true);
  }
  CHECK(different.size() == 48);
}

TEST_CASE("batches grow until a step does not fit, and what does not fit is told and not listed",
          "[tools][plan]") {
  const Scratch scratch;
  const std::string file = large_gpt(scratch);
  const Json plan = planned(file, {});
  std::set<std::string> too_large;
  std::size_t fit = 0;
  for (const Json& candidate : plan["candidates"]) {
    CAPTURE(candidate.dump());
    const Json run = run_of(file, candidate);
    CHECK(candidate["fits_device"] == run["fits_device"]);
    CHECK(candidate["peak_memory_bytes"] == run["memory"]["peak_bytes"]);
    CHECK(was_simulated(candidate) == (candidate["fits_device"] == true));
    if (was_simulated(candidate)) {
      ++fit;
      continue;
    }
    CHECK(candidate["place"].is_null());
    too_large.insert(candidate["set"]["training.strategy"].get<std::string>() +
                     candidate["set"].value("training.reshard_after_forward", "") +
                     candidate["set"].value("workload.activation_checkpointing", "") +
                     (candidate["set"].contains("training.mp_policy") ? "bf16" : "") +
                     (candidate["set"].contains("training.replicate") ? "HSDP" : ""));
  }
  // Each way has the first batch that does not fit, and no larger one.
  const std::set<std::string> ways{
      "bucketed",          "bucketedfull",         "fsdpauto",         "fsdpautofull",
      "fsdpfalse",         "fsdpfalsefull",        "fsdpautobf16",     "fsdpautofullbf16",
      "fsdpfalsebf16",     "fsdpfalsefullbf16",    "fsdpautobf16HSDP", "fsdpautofullbf16HSDP",
      "fsdpfalsebf16HSDP", "fsdpfalsefullbf16HSDP"};
  CHECK(std::ranges::includes(too_large, ways));
  for (const std::string& way : too_large)  // beside those, every second block
    CHECK((ways.contains(way) || way.find('2') != std::string::npos));
  const std::size_t unfit = plan["candidates"].size() - fit;
  CHECK(unfit == too_large.size());

  const std::string text = ddpsim({"plan", file, "--best", "1000", "--wide"}).out;
  CHECK_THAT(text, Catch::Contains("\nbf16: ") && Catch::Contains("; AC: "));
  const std::size_t rows = block_of(text, "the ").size() - 4;  // title, headings, rule, note
  CHECK(rows == fit);
  CHECK_THAT(
      text,
      Catch::Contains(fmt::format("{} combinations were tried: {} fit ", fit + unfit, fit)) &&
          Catch::Contains(fmt::format("; {} take more, and so would larger batches.", unfit)));
  for (const Json& candidate : plan["candidates"]) {
    if (was_simulated(candidate)) continue;
    const Bytes peak{candidate["peak_memory_bytes"].get<std::int64_t>()};
    CHECK_THAT(text, Catch::Contains(fmt::format("batch {} takes {}", candidate["batch"].get<int>(),
                                                 to_string(peak))));
  }
}

TEST_CASE("a plan's text, JSON and CSV say the same", "[tools][plan]") {
  const Scratch scratch;
  const std::string file = large_gpt(scratch, "{}", ", price: 2 USD/h");
  const Words words{"plan", file, "--gpus", "8,32", "--wide"};
  const auto with = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(all);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string text = with({});
  const Json candidates = Json::parse(with({"--json", "-"}))["candidates"];
  const Words quickest = block_of(text, "the 10 quickest of "),
              cheapest = block_of(text, "the 10 cheapest of ");
  REQUIRE(quickest.size() >= 13);
  REQUIRE(cheapest.size() >= 13);
  // A line of the table for each place, by the rate and by the cost, with its figures.
  const auto line_has = [](const std::string& line, const Json& candidate) {
    CAPTURE(line, candidate.dump());
    CHECK_THAT(
        line, Catch::Contains(fmt::format("  {:.2f}  ", candidate["step_ms"].get<double>())) &&
                  Catch::Contains(
                      fmt::format("  {:.0f}  ", candidate["tokens_per_second"].get<double>())) &&
                  Catch::Contains(fmt::format("  {:.2f}  ",
                                              candidate["cost_per_billion_tokens"].get<double>())));
    REQUIRE(!candidate["step_low_ms"].is_null());
    CHECK_THAT(line, Catch::Contains(band_in_words(candidate["step_low_ms"].get<double>(),
                                                   candidate["step_high_ms"].get<double>())));
  };
  double last_cost = 0;
  for (std::size_t place = 0; place < 10; ++place) {
    line_has(quickest[3 + place], candidates[place]);
    const auto by_cost = std::find_if(candidates.begin(), candidates.end(), [&](const Json& each) {
      return each["cost_place"] == place + 1;
    });
    REQUIRE(by_cost != candidates.end());
    line_has(cheapest[3 + place], *by_cost);
    CHECK((*by_cost)["cost_per_billion_tokens"].get<double>() >= last_cost);
    last_cost = (*by_cost)["cost_per_billion_tokens"].get<double>();
  }
  // What to write for both.
  const std::string snippets = text.substr(text.find("keys for the scenario"));
  for (const char* which : {"place", "cost_place"}) {
    const Json& chosen = *std::find_if(candidates.begin(), candidates.end(),
                                       [&](const Json& each) { return each[which] == 1; });
    CHECK_THAT(
        snippets,
        Catch::Contains(fmt::format("  nodes: {}\n", chosen["nodes"].dump())) &&
            Catch::Contains(fmt::format("  batch: {}\n", chosen["batch"].dump())) &&
            Catch::Contains("training:\n  strategy: " + chosen["strategy"].get<std::string>()));
  }
  // CSV in the order of JSON.
  const std::string csv = with({"--csv", "-"});
  CsvReader reader(csv);
  CsvRecord header, row;
  REQUIRE(reader.next(header));
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(header.fields.begin(), header.fields.end(), name) -
                                    header.fields.begin());
  };
  std::size_t rows = 0;
  for (; reader.next(row); ++rows) {
    REQUIRE(rows < candidates.size());
    CHECK(row.fields.at(column("peak_memory_bytes")) ==
          candidates[rows]["peak_memory_bytes"].dump());
    CHECK(row.fields.at(column("place")) ==
          (candidates[rows]["place"].is_null() ? std::string() : candidates[rows]["place"].dump()));
  }
  CHECK(rows == candidates.size());
}

TEST_CASE("what --set says of a plan's keys stays", "[tools][plan]") {
  const Scratch scratch;
  const std::string file = large_gpt(scratch, "{strategy: bucketed, bucket_cap: 100 MiB}");
  for (const Words& said :
       {Words{"--set", "training.strategy=fsdp"}, Words{"--set", "training={strategy: fsdp}"}}) {
    const Json plan = planned(file, said)["candidates"];
    CHECK(plan.size() > 2);
    for (const Json& candidate : plan) CHECK(candidate["strategy"] == "fsdp");
  }
  const Json one = planned(file, {"--set", "workload.batch=3", "--strategies", "bucketed", "--set",
                                  "workload.activation_checkpointing=2"});
  REQUIRE(one["candidates"].size() == 1);
  CHECK(one["candidates"][0]["batch"] == 3);
  CHECK(one["candidates"][0]["label"] == "bucketed, 100 MiB");
  const Json kept =
      planned(file, {"--set", "training.reshard_after_forward=true", "--strategies", "fsdp",
                     "--batches", "1", "--set", "workload.activation_checkpointing=none"});
  REQUIRE(kept["candidates"].size() == 3);  // with autocast, mixed, and mixed with replicas
  for (const Json& each : kept["candidates"])
    CHECK(!each["set"].contains("training.reshard_after_forward"));
  // The scenario's own batch is tried, whatever it is.
  const Json odd = planned(large_gpt(scratch), {"--strategies", "fsdp", "--gpus", "16"});
  std::set<int> batches;
  for (const Json& candidate : odd["candidates"]) batches.insert(candidate["batch"].get<int>());
  CHECK(batches.contains(4));
  CHECK(batches.contains(1));
  // Mixed precision and replicas, by the file or by --set.
  const auto values_of = [](const Json& plan, const char* key) {
    std::set<std::string> values;
    for (const Json& each : plan["candidates"]) values.insert(each["set"].value(key, "none"));
    return values;
  };
  const Words few{"--strategies", "fsdp", "--batches", "1"};
  using Values = std::set<std::string>;
  const Json usual = planned(large_gpt(scratch), few);
  CHECK(values_of(usual, "training.mp_policy") ==
        Values{"none", "{param_dtype: bf16, reduce_dtype: fp32}"});
  CHECK(values_of(usual, "training.replicate") == Values{"none", "2"});
  const Json said =
      planned(large_gpt(scratch, "{mp_policy: {param_dtype: bf16}, replicate: 4}"), few);
  CHECK(values_of(said, "training.mp_policy") == Values{"none"});
  CHECK(values_of(said, "training.replicate") == Values{"none"});
  // Resharding among a number of ranks that the file says is tried beside the usual ways.
  CHECK(values_of(usual, "training.reshard_after_forward") == Values{"auto", "false"});
  CHECK(values_of(planned(large_gpt(scratch, "{reshard_after_forward: 8}"), few),
                  "training.reshard_after_forward") == Values{"8", "auto", "false"});
  Words set = few;
  set.insert(set.end(),
             {"--set", "training.mp_policy.reduce_dtype=bf16", "--set", "training.replicate=1"});
  const Json by_set = planned(large_gpt(scratch), set);
  CHECK(values_of(by_set, "training.mp_policy") == Values{"none"});
  CHECK(values_of(by_set, "training.replicate") == Values{"none"});
  // Without bf16 there is nothing to cast to; with one node, or one rank on each, no replicas.
  const Json plain = planned(large_gpt(scratch), {"--strategies", "fsdp", "--batches", "1", "--set",
                                                  "workload.compute=tf32"});
  CHECK(values_of(plain, "training.mp_policy") == Values{"none"});
  Words small = few;
  small.insert(small.end(), {"--gpus", "8"});
  CHECK(values_of(planned(large_gpt(scratch), small), "training.replicate") == Values{"none"});
}

TEST_CASE("every second block is a checkpoint where none is too much and all fit",
          "[tools][plan]") {
  const Scratch scratch;
  const Json plan = planned(large_gpt(scratch), {"--strategies", "fsdp", "--gpus", "8,16"});
  const char* key = "workload.activation_checkpointing";
  /// The way, the number of GPUs and the batch.
  const auto place_of = [&](const Json& candidate) {
    Json set = candidate["set"];
    set.erase(key);
    return set.dump() + candidate["ranks"].dump();
  };
  std::map<std::string, std::set<std::string>> fits;
  for (const Json& each : plan["candidates"])
    if (was_simulated(each)) fits[place_of(each)].insert(each["set"].value(key, "none"));
  int tried = 0;
  for (const Json& each : plan["candidates"]) {
    if (each["set"].value(key, "none") != "2") continue;
    ++tried;
    CHECK(fits[place_of(each)].contains("full"));
    CHECK(!fits[place_of(each)].contains("none"));
  }
  CHECK(tried > 0);
}

TEST_CASE("a plan says how to wrap the model", "[tools][plan]") {
  const Scratch scratch;
  const std::string file = large_gpt(scratch);
  const auto code_of = [&](const Words& more) {
    Words words{"plan", file, "--batches", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string text = ddpsim(words).out;
    const std::size_t begin = text.find("\nPython for the model");
    return begin == std::string::npos ? "" : text.substr(begin);
  };
  CHECK(code_of({"--strategies", "bucketed"}).empty());
  const Words fixed{"--strategies", "fsdp",
                    "--set",        "training.reshard_after_forward=false",
                    "--set",        "training.mp_policy={param_dtype: bf16, reduce_dtype: fp32}",
                    "--set",        "training.replicate=2",
                    "--set",        "workload.activation_checkpointing=2"};
  CHECK(code_of(fixed) ==
        "\nPython for the model, before the optimizer is made of its parameters:\n\n"
        "# the quickest\n"
        "import torch\n"
        "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import "
        "checkpoint_wrapper\n"
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n\n"
        "for name in [f\"transformer.h.{i}\" for i in range(1, 48, 2)]:\n"
        "    above, _, last = name.rpartition(\".\")\n"
        "    block = checkpoint_wrapper(model.get_submodule(name))\n"
        "    setattr(model.get_submodule(above), last, block)\n"
        "sharding = dict(\n"
        "    mesh=init_device_mesh(\"cuda\", (2, 8), mesh_dim_names=(\"replicate\", "
        "\"shard\")),\n"
        "    mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, "
        "reduce_dtype=torch.float32),\n"
        "    reshard_after_forward=False,\n"
        ")\n"
        "for names in [[f\"transformer.h.{i}\"] for i in range(48)]:\n"
        "    fully_shard([model.get_submodule(name) for name in names], **sharding)\n"
        "fully_shard(model, **sharding)\n");
}

TEST_CASE("a plan tries those of ZeRO that the scenario compares", "[tools][plan]") {
  const Scratch scratch;
  const std::string file = large_gpt(scratch);
  const auto strategies_of = [&](const Words& more) {
    std::map<std::string, int> count;
    const Json plan = planned(file, more);
    for (const Json& each : plan["candidates"]) ++count[each["strategy"].get<std::string>()];
    return count;
  };
  const Words few{"--batches", "1", "--set", "workload.activation_checkpointing=none"};
  const auto with = [&](const std::string& compare) {
    Words words = few;
    words.insert(words.end(), {"--set", "compare=" + compare});
    return strategies_of(words);
  };
  // fsdp is tried six times: with and without resharding, with autocast, in mixed precision, and
  // with a replica on each node.
  CHECK(strategies_of(few) == std::map<std::string, int>{{"bucketed", 1}, {"fsdp", 6}});
  // torch's zero1 runs under autocast alone; DeepSpeed's stages cast parameters, too.
  CHECK(with("[bucketed, zero1, zero2, zero3, fsdp]") ==
        std::map<std::string, int>{
            {"bucketed", 1}, {"zero1", 1}, {"zero2", 2}, {"zero3", 2}, {"fsdp", 6}});
  CHECK(with("[zero3]") == std::map<std::string, int>{{"bucketed", 1}, {"zero3", 2}, {"fsdp", 6}});

  // Each is what run predicts, and what does not fit is told of each.
  Words words{"--set", "compare=[zero1, zero2, zero3]", "--strategies", "zero1,zero2,zero3"};
  const Json plan = planned(file, words);
  for (const Json& candidate : plan["candidates"]) {
    CAPTURE(candidate.dump());
    const Json run = run_of(file, candidate);
    CHECK(candidate["peak_memory_bytes"] == run["memory"]["peak_bytes"]);
    if (was_simulated(candidate)) CHECK(candidate["step_ms"] == run["step_ms"]);
  }
  words.insert(words.begin(), {"plan", file});
  const std::string text = ddpsim(words).out;
  for (const char* way : {"zero1", "zero2", "zero2, bf16", "zero3", "zero3, bf16"})
    CHECK_THAT(text, Catch::Contains("\n" + std::string(way) + " "));
  CHECK_THAT(text, Catch::Contains("DeepSpeed's configuration:") &&
                       Catch::Contains("\"bf16\": {\"enabled\": true},\n\"zero_optimization\": "
                                       "{\n  \"stage\": ") &&
                       !Catch::Contains("fully_shard("));
}

TEST_CASE("of what fits a plan tells where PyTorch's allocator would reserve more than there is",
          "[tools][plan]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("llama.yaml",
                 "workload: {model: llama3-8b, batch: 4, sequence: 2048, compute: bf16}\n"
                 "cluster: {system: dgx-h100, nodes: 8}\ntraining: {strategy: fsdp}\n")
          .string();
  const auto pools_note = [](const Json& answer) {
    for (const Json& note : answer["notes"])
      if (note.get<std::string>().find("would reserve") != std::string::npos)
        return note.get<std::string>();
    return std::string();
  };
  const Json plan = planned(file, {"--strategies", "fsdp", "--batches", "4"});
  int fit = 0, reserve_too_much = 0;
  for (const Json& candidate : plan["candidates"]) {
    if (!was_simulated(candidate)) continue;
    ++fit;
    reserve_too_much += pools_note(run_answer_of(file, candidate)).empty() ? 0 : 1;
  }
  REQUIRE(reserve_too_much > 0);
  REQUIRE(reserve_too_much < fit);
  CHECK_THAT(pools_note(plan),
             Catch::StartsWith(fmt::format("of {} of the {} steps that fit, the first in place ",
                                           reserve_too_much, fit)));
  CHECK(pools_note(planned(file, {"--strategies", "fsdp", "--batches", "1"})).empty());
}

TEST_CASE("a part of a node is planned as one node", "[tools][plan]") {
  const Scratch scratch;
  const Json plan = planned(large_gpt(scratch), {"--gpus", "2,8,16", "--batches", "1"});
  std::set<std::string> shapes;
  for (const Json& each : plan["candidates"])
    shapes.insert(fmt::format("{} x {}", each["nodes"].dump(), each["ranks_per_node"].dump()));
  CHECK(shapes == std::set<std::string>{"1 x 2", "1 x 8", "2 x 8"});
  // Whatever way the file says its size.
  for (const char* cluster :
       {"{device: h100-sxm, ranks: 16, ranks_per_node: 8, intra_node: nvlink4, inter_node: ib-ndr}",
        "{device: h100-sxm, nodes: 4, ranks_per_node: 8, intra_node: nvlink4, inter_node: "
        "ib-ndr}"}) {
    const Json other = planned(large_gpt(scratch), {"--set", std::string("cluster=") + cluster,
                                                    "--gpus", "4,32", "--batches", "1"});
    for (const Json& each : other["candidates"])
      CHECK(each["ranks"].get<int>() ==
            each["nodes"].get<int>() * each["ranks_per_node"].get<int>());
    // Ten ways of 4, four more with a replica on each node of 32.
    CHECK(other["candidates"].size() == 24);
  }
}

TEST_CASE("a plan says so where memory is not known, and promises nothing", "[tools][plan]") {
  // A workload profile says neither its batch nor its activations.
  const std::string profile = shipped("examples/own-profile.yaml");
  const Json plan = planned(profile, {"--strategies", "bucketed"});
  CHECK(plan["sorted_by"] == "micro_batches_per_second");
  REQUIRE(plan["candidates"].size() == 1);
  CHECK(plan["candidates"][0]["fits_device"].is_null());
  CHECK(plan["candidates"][0]["batch"].is_null());
  CHECK_THAT(plan["notes"].dump(), Catch::Contains("are not known here"));
  const std::string text = ddpsim({"plan", profile, "--strategies", "bucketed"}).out;
  CHECK_THAT(text, Catch::Contains("it is not known whether it fits") &&
                       Catch::Contains("the one that may fit"));
  refused({"plan", profile, "--batches", "8"}, "--batches: ");
  // A description has one batch.
  const Json described = planned(std::string(DDPSIM_TEST_DATA) + "/descriptions/gpt2.yaml",
                                 {"--cluster", "dgx-h100", "--gpus", "8,16"});
  for (const Json& each : described["candidates"])
    CHECK(each["batch"] == described["candidates"][0]["batch"]);
  CHECK_THAT(described["notes"].dump(), Catch::Contains("batches are not varied: "));
  refused({"plan", std::string(DDPSIM_TEST_DATA) + "/descriptions/gpt2.yaml", "--cluster",
           "dgx-h100", "--batches", "8"},
          "was described with one batch");
}

TEST_CASE("where nothing fits a plan says what the least takes, and ends with 1", "[tools][plan]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("large.yaml",
                                      "workload: {model: llama3-8b, batch: 1, sequence: 4096, "
                                      "compute: bf16}\ncluster: {system: dgx-a100, nodes: 1}\n")
                               .string();
  const Outcome outcome = ddpsim({"plan", file, "--strategies", "bucketed", "--json", "-"});
  CHECK(outcome.code == 1);
  const Json candidates = outcome.json()["candidates"];
  REQUIRE(candidates.size() == 2);  // without checkpoints, and with
  for (const Json& each : candidates) CHECK(each["fits_device"] == false);
  CHECK_THAT(outcome.err, Catch::Contains("ddpsim: no combination fits ") &&
                              Catch::Contains("8 GPUs, bucketed, batch 1"));
}

TEST_CASE("a plan refuses in one line what cannot be made", "[tools][plan]") {
  const Scratch scratch;
  const std::string file = large_gpt(scratch);
  const std::vector<std::pair<Words, std::string>> wrong{
      {{"--gpus", "12"}, "--gpus 12: a node has 8 here"},
      {{"--gpus", "8..20+4"}, "--gpus 12: "},
      {{"--gpus", "0"}, "--gpus 0: expected a whole number from 1"},
      {{"--gpus", "8..x"}, "--gpus 8..x: expected a range"},
      {{"--gpus", "16..8"}, "--gpus 16..8: the range 16..8 goes down"},
      {{"--gpus", "8,,16"}, "--gpus 8,,16: a value is empty"},
      {{"--gpus", "many"}, "--gpus many: expected a whole number"},
      {{"--gpus", "1..2000"}, "--gpus 1..2000: 2000 numbers are too many"},
      {{"--gpus", "8", "--nodes", "2"}, "--gpus says how many there are: leave --nodes 2 out"},
      {{"--gpus", "8", "--ranks", "16"}, "leave --ranks 16 out"},
      {{"--gpus", "16", "--ranks-per-node", "8,4"}, "--gpus: the nodes here have"},
      {{"--gpus", "16", "--set",
        "cluster={device: h100-sxm, ranks_per_node: 8, intra_node: "
        "nvlink4}"},
       "--gpus 16, as nodes of 8: "},
      {{"--batches", "0"}, "--batches 0: expected a whole number from 1"},
      {{"--batches", "2", "--set", "workload.batch=2"}, "leave workload.batch out of --set"},
      {{"--strategies", "none"}, "got \"none\""},
      {{"--strategies", "fdsp"}, "did you mean \"fsdp\"?"},
      {{"--strategies", "fsdp", "--set", "training.strategy=fsdp"},
       "leave training.strategy out of --set"},
      {{"--best", "0"}, "--best 0: expected a whole number from 1"},
      {{"--set", "workload.batsh=1"}, "batsh"},
      {{file}, "plan needs one scenario"}};
  for (const auto& [more, says] : wrong) {
    Words words{"plan", file};
    words.insert(words.end(), more.begin(), more.end());
    refused(words, says);
  }
}

TEST_CASE("a model of 8 B parameters on up to 64 GPUs is planned in under ten seconds",
          "[tools][plan]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("llama.yaml",
                                      "workload: {model: llama3-8b, batch: 1, sequence: 4096, "
                                      "compute: bf16}\ncluster: dgx-h100\n")
                               .string();
  const auto begin = std::chrono::steady_clock::now();
  const Json plan = planned(file, {"--gpus", "8..64*2"});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  // Parameters, gradients and AdamW's state in fp32 are 16 bytes a parameter: 120 GiB of DDP.
  std::set<int> ranks;
  for (const Json& candidate : plan["candidates"]) {
    ranks.insert(candidate["ranks"].get<int>());
    if (was_simulated(candidate)) CHECK(candidate["strategy"] == "fsdp");
  }
  CHECK(ranks == std::set<int>{8, 16, 32, 64});
  CHECK(plan["candidates"][0]["ranks"] == 64);
}

}  // namespace ddpsim
