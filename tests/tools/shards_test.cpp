#include "sim/tune/shards.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/parallel/policy/fsdp_units.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "sim/predict/predict.hpp"
#include "tests/tools/answers.hpp"
#include "tools/report/reports/sharding_words.hpp"
#include "tools/study/wrapping.hpp"

namespace ddpsim {
namespace {

/// A GPT-2 of that many blocks.
Scenario sharded_gpt(int blocks, const std::string& cluster, const std::string& training,
                     const std::string& frozen = "[]") {
  const std::string path = "/memory/sharded.yaml";
  const MemoryFile file(
      path,
      fmt::format("workload: {{model: {{base: gpt2, layers: {}, d_model: 256, d_ff: 1024, heads: "
                  "4, vocabulary: 4096}}, batch: 4, sequence: 256, compute: bf16, optimizer: "
                  "adamw-fused, frozen: {}}}\ncluster: {}\ntraining: {{strategy: fsdp{}}}\n",
                  blocks, frozen, cluster, training));
  return read_scenario(path, {});
}

constexpr const char* sharded_over_two =
    "{device: h100-sxm, nodes: 2, ranks_per_node: 4, intra_node: nvlink4, inter_node: ib-ndr}";
constexpr const char* sharded_over_ethernet =
    "{device: h100-sxm, nodes: 4, ranks_per_node: 2, intra_node: nvlink4, inter_node: "
    "ethernet-10g}";
constexpr const char* sharded_in_one =
    "{device: a100-40, nodes: 1, ranks_per_node: 3, intra_node: nvlink3}";

/// The file of llama3-8b on two nodes of eight H100, in mixed precision.
std::string sharded_llama(const Scratch& scratch, const std::string& training = "") {
  return scratch
      .write("llama.yaml",
             "workload: {model: llama3-8b, batch: 1, sequence: 4096, compute: bf16}\n"
             "cluster: {system: dgx-h100, nodes: 2}\n"
             "training: {strategy: fsdp, mp_policy: {param_dtype: bf16, reduce_dtype: fp32}" +
                 training + "}\n")
      .string();
}

}  // namespace

TEST_CASE(
    "every sharding that tune tries has the step that is predicted for it, and none is below "
    "its bound",
    "[tools][shards]") {
  for (const char* cluster : {sharded_over_two, sharded_over_ethernet, sharded_in_one})
    for (const char* training :
         {"", ", micro_batches: 2", ", mp_policy: {param_dtype: bf16, reduce_dtype: fp32}",
          ", micro_batches: 2, no_sync: true"}) {
      CAPTURE(cluster, training);
      const Scenario scenario = sharded_gpt(6, cluster, training);
      const StepModel model = model_of(scenario);
      const ShardTuning tuning = tune_shards(scenario, model);
      std::size_t number = 0;
      for (const Sharding& each : tuning.tried) {
        CHECK(each.step >= each.bound);
        CHECK(each.step >= tuning.lower_bound);
        if (number++ % 7 != 0) continue;  // simulated as a whole, a few suffice
        const Step step = predict(model, each.training);
        CHECK(step.metrics.step == each.step);
        const StepMetrics none = predict(model, each.training.compared_with()).metrics;
        CHECK(exposed(step.metrics, none) == each.exposed);
      }
      CHECK(std::ranges::is_sorted(tuning.tried, {}, &Sharding::step));
      CHECK(tuning.best == 0);
      CHECK(tuning.best_one().step <= tuning.given_one().step);
      CHECK(tuning.without <= tuning.lower_bound);
    }
}

TEST_CASE("all combinations of shardings are tried, each once", "[tools][shards]") {
  // 7 blocks: 1, 2, 3, 4 or all 7 a unit; the last norm of a GPT-2, whose head is its embedding;
  // three ways of resharding; 1 or 2 inputs; one group or two; no replicas, or one on each node.
  const Scenario scenario = sharded_gpt(7, sharded_over_two, "");
  const ShardTuning tuning = tune_shards(scenario, model_of(scenario));
  // The eight best of these, and the scenario's, prefetch 1, 2 or 3 units explicitly, either way.
  const auto implicit = std::ranges::count_if(tuning.tried, [](const Sharding& each) {
    return each.training.forward_prefetch + each.training.backward_prefetch == 0;
  });
  CHECK(implicit == 5 * 2 * 3 * 2 * 2 * 2);
  const std::size_t prefetched = tuning.tried.size() - static_cast<std::size_t>(implicit);
  CHECK((prefetched == 8 * 15 || prefetched == 9 * 15));
  std::set<int> blocks, units, replicas;
  for (const Sharding& each : tuning.tried) {
    blocks.insert(each.blocks);
    replicas.insert(each.training.replicate);
    units.insert(each.units);
    const int of_blocks = (7 + each.blocks - 1) / each.blocks;
    CHECK(each.units == of_blocks + 1 + (each.own_head ? 1 : 0));
  }
  CHECK(blocks == std::set<int>{1, 2, 3, 4, 7});
  CHECK(replicas == std::set<int>{1, 2});
  CHECK(tuning.given == tuning.standard);
  CHECK(tuning.standard_one().changes() == 0);
}

TEST_CASE("a scenario's own sharding is among those that are tried", "[tools][shards]") {
  const Scenario scenario = sharded_gpt(
      6, sharded_over_ethernet,
      ", units: [transformer.h.*.attn, transformer.h.*.mlp], reshard_after_forward: false, "
      "replicate: 4, reduce_scatter_max_input_buffers: 3, separate_reduce_scatter_group: true");
  const StepModel model = model_of(scenario);
  const ShardTuning tuning = tune_shards(scenario, model);
  const Sharding& given = tuning.given_one();
  CHECK(given.blocks == 0);
  CHECK(given.changes() == 5);
  CHECK(given.step == predict(model, scenario.training).metrics.step);
  CHECK(tuning.standard != tuning.given);
}

TEST_CASE("the scenario's units are tried with and without settings of their own",
          "[tools][shards]") {
  const Scenario scenario = sharded_gpt(
      6, sharded_over_two,
      ", forward_prefetch: 4, units: [{modules: transformer.h.*, reshard_after_forward: 4}]");
  REQUIRE(!scenario.training.unit_settings.empty());
  const StepModel model = model_of(scenario);
  const ShardTuning tuning = tune_shards(scenario, model);
  const Sharding& given = tuning.given_one();
  CHECK(given.training.unit_settings == scenario.training.unit_settings);
  CHECK(given.training.forward_prefetch == 4);
  CHECK(given.step == predict(model, scenario.training).metrics.step);
  CHECK(std::ranges::any_of(tuning.tried, [&](const Sharding& each) {
    return each.training.units == scenario.training.units && each.training.unit_settings.empty();
  }));
}

TEST_CASE("what tune says to paste takes the place of what the scenario has of units",
          "[tools][shards]") {
  const auto [units, said] = GENERATE(table<std::string, bool>(
      {{"[\"transformer.h.*\"]", false},
       {"[{modules: \"transformer.h.*\", reshard_after_forward: 4}]", true},
       {"[\"transformer.h.*.attn\", \"transformer.h.*.mlp\"]", true}}));
  CAPTURE(units);
  const Scenario scenario = sharded_gpt(6, sharded_over_two, ", units: " + units);
  Sharding blocks;
  blocks.training = sharded_gpt(6, sharded_over_two, "").training;
  const std::string keys = sharding_keys(scenario, blocks);
  CHECK((keys.find("units: [\"transformer.h.*\"]") != std::string::npos) == said);
}

TEST_CASE("frozen parameters are wrapped and tuned with the others of their unit",
          "[tools][shards]") {
  Scenario scenario = sharded_gpt(6, sharded_over_two, "", "[transformer.h.0.*, \"*.mlp.*\"]");
  REQUIRE(scenario.workload.frozen_parameters.size() > 20);
  CHECK_THAT(fully_shard_code(scenario),
             Catch::Contains("for names in [[f\"transformer.h.{i}\"] for i in range(6)]:"));
  const std::vector<std::string> names = names_for_units(scenario.workload);
  std::set<std::size_t> sizes;
  for (const Sharding& each : tune_shards(scenario, model_of(scenario)).tried) {
    std::set<std::int32_t> in_blocks;
    for (const auto& unit : each.training.units)
      for (const std::int32_t member : unit)
        if (names[at(member)].starts_with("transformer.h.")) in_blocks.insert(member);
    if (!each.training.units.empty()) CHECK(in_blocks.size() == 6 * 12);
    scenario.training = each.training;
    const std::string code = fully_shard_code(scenario);
    CHECK_THAT(code, !Catch::Contains("do not tell"));
    sizes.insert(each.training.units.size());
  }
  CHECK(sizes.size() > 3);
}

TEST_CASE("tune tries explicit prefetches with the best of what else there is", "[tools][shards]") {
  const Scenario scenario = sharded_gpt(6, sharded_over_two, "");
  const StepModel model = model_of(scenario);
  const ShardTuning tuning = tune_shards(scenario, model);
  int tried = 0;
  for (const Sharding& each : tuning.tried)
    if (each.training.forward_prefetch > 0) {
      ++tried;
      CHECK(each.step == predict(model, each.training).metrics.step);
    }
  CHECK(tried >= 3);  // depths of 1, 2 and 3
}

TEST_CASE("what is recommended is as good as the best, with no more to change", "[tools][shards]") {
  for (const char* cluster : {sharded_over_two, sharded_over_ethernet, sharded_in_one}) {
    CAPTURE(cluster);
    const Scenario scenario = sharded_gpt(6, cluster, "");
    const StepModel model = model_of(scenario);
    ShardOptions options;
    options.noise = 0;
    const ShardTuning tuning = tune_shards(scenario, model, options);
    const Sharding &best = tuning.best_one(), &advised = tuning.advised_one();
    CHECK(in_seconds(advised.step) <= 1.001 * in_seconds(best.step));
    CHECK(advised.changes() <= best.changes());
    // A gain that is within noise is not worth a change.
    options.noise = 0.999;
    const ShardTuning kept = tune_shards(scenario, model, options);
    CHECK(!kept.pays);
    CHECK(kept.advised == kept.given);
    // Less memory, within half the step more.
    options = {.least_memory = true, .within = 0.5, .noise = 0, .threads = 3, .progress = {}};
    const ShardTuning small = tune_shards(scenario, model, options);
    for (const Sharding& each : small.tried)
      if (in_seconds(each.step) <= 1.5 * in_seconds(small.tried.front().step))
        CHECK(small.best_one().peak <= each.peak);
    CHECK(small.advised_one().peak <= small.best_one().peak);
    // As many threads, the same answer.
    REQUIRE(small.tried.size() == tuning.tried.size());
    for (std::size_t i = 0; i < small.tried.size(); ++i)
      CHECK(small.tried[i].step == tuning.tried[i].step);
  }
}

TEST_CASE("one rank has nobody to shard with", "[tools][shards]") {
  const Scenario scenario =
      sharded_gpt(2, "{device: h100-sxm, nodes: 1, ranks_per_node: 1, intra_node: nvlink4}", "");
  CHECK_THROWS_WITH(tune_shards(scenario, model_of(scenario)),
                    Catch::Contains("one rank shards with nobody"));
}

TEST_CASE("tune of fsdp prints what to paste, and run predicts that step", "[tools][shards]") {
  const Scratch scratch;
  const std::string file = sharded_llama(scratch);
  const Outcome outcome = ddpsim({"tune", file, "--wide"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json found = json_of({"tune", file, "-q"});
  CHECK(found["format"] == "ddpsim.shards/1");
  CHECK(found["evaluated"] == found["shardings"].size());
  const Json &advised = found["advised_sharding"], &given = found["given_sharding"];
  CHECK(found["pays"] == true);
  CHECK(advised["step_ms"] < given["step_ms"]);
  CHECK(found["lower_bound_ms"] <= found["best_sharding"]["step_ms"]);
  CHECK(given == found["default_sharding"]);
  CHECK_THAT(outcome.out,
             Catch::Contains(fmt::format("({:.2f} -> {:.2f} ms)", given["step_ms"].get<double>(),
                                         advised["step_ms"].get<double>())) &&
                 Catch::Contains("fully_shard(model, **sharding)") &&
                 Catch::Contains("+ [[\"model.norm\", \"lm_head\"]]"));
  // The keys, put into the scenario beside its mp_policy.
  const std::vector<std::string> keys = pasted_training(outcome.out);
  REQUIRE(keys.size() > 2);
  CHECK(std::ranges::count(keys, "training.units=[\"model.layers.*\", \"model.norm+lm_head\"]") ==
        1);
  const auto with_keys = [&](std::vector<std::string> words) {
    words.insert(words.end(), keys.begin(), keys.end());
    return json_of(words);
  };
  const Json run = with_keys({"run", file, "-q", "--set", "compare=[fsdp]"})["results"][0];
  CHECK(run["step_ms"] == advised["step_ms"]);
  CHECK(run["memory"]["peak_bytes"] == advised["peak_memory_bytes"]);
  CHECK(run["exposed_ms"].get<double>() == Approx(advised["exposed_ms"].get<double>()));
  CHECK(run["fits_device"] == advised["fits_device"]);
  // A scenario that has it already is told to keep it.
  const Json kept = with_keys({"tune", file, "-q"});
  CHECK(kept["pays"] == false);
  CHECK(kept["advised_sharding"]["step_ms"] == advised["step_ms"]);
}

TEST_CASE("tune of fsdp refuses what is of buckets, and says where nothing fits",
          "[tools][shards]") {
  const Scratch scratch;
  const std::string file = sharded_llama(scratch);
  const auto refused_with = [&](const std::vector<std::string>& more, const std::string& says) {
    std::vector<std::string> words{"tune", file};
    words.insert(words.end(), more.begin(), more.end());
    refused(words, says);
  };
  refused_with({"--uncertainty", "10%"}, "--uncertainty 10%: is of buckets");
  refused_with({"--largest-bucket", "64MiB"}, "--largest-bucket 64MiB: is of buckets");
  refused_with({"--buckets", scratch.path("b.yaml").string()}, "is of buckets, and");
  refused_with({"--report", scratch.path("r.html").string()}, "is of buckets");
  refused_with({"--objective", "speed"}, "--objective speed: expected step, exposed or memory");
  refused_with({"--set", "training.replicate=3"}, "training.replicate");
  const Outcome large =
      ddpsim({"tune", file, "--set", "workload.batch=16", "--set", "cluster.nodes=1"});
  CHECK(large.code == 0);
  CHECK_THAT(large.err, Catch::Contains("no sharding fits h100-sxm"));
}

TEST_CASE("tune of fsdp looks for memory where it is asked to", "[tools][shards]") {
  const Scratch scratch;
  const std::string file = sharded_llama(scratch, ", reshard_after_forward: false");
  const Json found = json_of({"tune", file, "-q", "--objective", "memory", "--within", "20%"});
  CHECK(found["advised_sharding"]["peak_memory_bytes"] <
        found["given_sharding"]["peak_memory_bytes"]);
  CHECK(found["advised_sharding"]["reshard_after_forward"] != "false");
  CHECK_THAT(ddpsim({"tune", file, "--objective", "memory", "--within", "20%"}).out,
             Catch::Contains(" of memory in place of "));
}

}  // namespace ddpsim
