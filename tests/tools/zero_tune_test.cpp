// `ddpsim tune` of zero1, zero2 and zero3: their options.

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/shards.hpp"
#include "tests/tools/answers.hpp"

namespace ddpsim {
namespace {

/// A GPT-2 of 13 M parameters on two nodes of four H100.
Scenario zero_gpt(const std::string& training, const std::string& network = "ib-ndr") {
  const std::string path = "/memory/zero.yaml";
  const MemoryFile file(
      path,
      fmt::format("workload: {{model: {{base: gpt2, layers: 6, d_model: 384, d_ff: 1536, heads: 6, "
                  "vocabulary: 4096}}, batch: 4, sequence: 256, compute: bf16, optimizer: "
                  "adamw-fused}}\ncluster: {{device: h100-sxm, nodes: 2, ranks_per_node: 4, "
                  "intra_node: nvlink4, inter_node: {}}}\ntraining: {}\n",
                  network, training));
  return read_scenario(path, {});
}

const std::vector<std::string> zeros{
    "{strategy: zero1}",
    "{strategy: zero1, zero1: {variant: course}}",
    "{strategy: zero1, zero1: {variant: deepspeed}}",
    "{strategy: zero1, zero1: {variant: megatron}}",
    "{strategy: zero2}",
    "{strategy: zero2, micro_batches: 2, mp_policy: {param_dtype: bf16}}",
    "{strategy: zero3}",
    "{strategy: zero3, zero3: {stage3_max_reuse_distance: 0, stage3_prefetch_bucket_size: 700000}}",
};

/// gpt2-xl on two nodes of eight H100.
std::string zero_file(const Scratch& scratch, const std::string& training) {
  return scratch
      .write("zero.yaml",
             "workload: {model: gpt2-xl, batch: 4, sequence: 1024, compute: bf16}\n"
             "cluster: {system: dgx-h100, nodes: 2}\n"
             "training: " +
                 training + "\n")
      .string();
}

}  // namespace

TEST_CASE(
    "every option of a ZeRO that tune tries has the step that is predicted for it, and none is "
    "below its bound",
    "[tools][zero][shards]") {
  for (const char* network : {"ib-ndr", "ethernet-10g"})
    for (const std::string& training : zeros) {
      CAPTURE(network, training);
      const Scenario scenario = zero_gpt(training, network);
      const StepModel model = model_of(scenario);
      const ShardTuning tuning = tune_shards(scenario, model);
      std::size_t number = 0;
      for (const Sharding& each : tuning.tried) {
        CHECK(each.step >= each.bound);
        CHECK(each.step >= tuning.lower_bound);
        if (number++ % 5 != 0) continue;  // simulated as a whole, a few suffice
        const Step step = predict(model, each.training);
        CHECK(step.metrics.step == each.step);
        const StepMetrics none = predict(model, each.training.compared_with()).metrics;
        CHECK(exposed(step.metrics, none) == each.exposed);
      }
      CHECK(tuning.best_one().step <= tuning.given_one().step);
      CHECK(tuning.best_one().step <= tuning.standard_one().step);
      CHECK(tuning.standard_one().changes() == 0);
      CHECK(*tuning.given_one().training.zero() == *scenario.training.zero());
      CHECK(tuning.without <= tuning.lower_bound);
    }
}

TEST_CASE("tune tries each of a ZeRO's options once, with the sizes that differ",
          "[tools][zero][shards]") {
  const auto tried = [](const std::string& training) {
    const Scenario scenario = zero_gpt(training);
    std::vector<ZeroSettings> all;
    for (const Sharding& each : tune_shards(scenario, model_of(scenario)).tried) {
      CHECK(std::ranges::find(all, *each.training.zero()) == all.end());
      all.push_back(*each.training.zero());
    }
    return all;
  };
  CHECK(tried("{strategy: zero1}").size() == 2);
  CHECK(tried("{strategy: zero1, zero1: {variant: course}}").size() == 3);
  // 13 M parameters: buckets of 5 and 10 M, and of 500 M, in which all are one; with and without
  // overlap_comm.
  CHECK(tried("{strategy: zero2}").size() == 3 * 2);
  CHECK(tried("{strategy: zero1, zero1: {variant: deepspeed}}").size() == 3 * 2);
  // And the scenario's.
  CHECK(tried("{strategy: zero2, zero2: {reduce_bucket_size: 1234}}").size() == 4 * 2);
  // Buckets of 5, 10 and 40 M, and by default, with and without gathers during the forward pass, or
  // no overlap; each with two ways to average.
  const auto megatron = tried("{strategy: zero1, zero1: {variant: megatron}}");
  CHECK(megatron.size() == 2 * (1 + 2 * 4));
  for (const ZeroSettings& each : megatron)
    CHECK((each.overlap_grad_reduce || !each.overlap_param_gather));
  // Gathered ahead are 5, 10 or 50 M; 1000 M live; reuse is 0 or 1000 M; parameters of up to 0 or
  // 100,000 elements stay; with and without overlap_comm. Other buckets are tried with the best of
  // these alone.
  std::size_t with_given = 0;
  std::set<std::int64_t> buckets;
  for (const ZeroSettings& each : tried("{strategy: zero3}")) {
    with_given += each.reduce_bucket_size == 500'000'000 ? 1 : 0;
    buckets.insert(each.reduce_bucket_size);
  }
  CHECK(with_given == 3 * 2 * 2 * 2);
  CHECK(buckets == std::set<std::int64_t>{5'000'000, 10'000'000, 500'000'000});
}

TEST_CASE("tune of a ZeRO prints what to paste, and run predicts that step", "[tools][zero]") {
  const Scratch scratch;
  const auto [training, code] = GENERATE(table<std::string, std::string>({
      {"{strategy: zero2}", "DeepSpeed's configuration:"},
      {"{strategy: zero3, zero3: {overlap_comm: false}}", "DeepSpeed's configuration:"},
      {"{strategy: zero1, zero1: {variant: megatron}}", "--use-distributed-optimizer --overlap-"},
      {"{strategy: zero1, zero1: {variant: megatron}, mp_policy: {param_dtype: bf16}}",
       "--use-distributed-optimizer --bf16 --grad-reduce-in-bf16 --overlap-"},
  }));
  CAPTURE(training);
  const std::string file = zero_file(scratch, training);
  const Outcome outcome = ddpsim({"tune", file});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json found = json_of({"tune", file, "-q"});
  CHECK(found["format"] == "ddpsim.shards/1");
  const Json &advised = found["advised_sharding"], &given = found["given_sharding"];
  REQUIRE(found["pays"] == true);
  CHECK(advised["step_ms"] < given["step_ms"]);
  CHECK(found["lower_bound_ms"] <= found["best_sharding"]["step_ms"]);
  CHECK_THAT(outcome.out, Catch::Contains(code) && Catch::Contains("verdict: ") &&
                              Catch::Contains(fmt::format("({:.2f} -> {:.2f} ms)",
                                                          given["step_ms"].get<double>(),
                                                          advised["step_ms"].get<double>())));
  const std::vector<std::string> keys = pasted_training(outcome.out);
  REQUIRE(!keys.empty());
  const auto with_keys = [&](std::vector<std::string> words) {
    words.insert(words.end(), keys.begin(), keys.end());
    return json_of(words);
  };
  const std::string strategy = found["strategy"];
  const Json run =
      with_keys({"run", file, "-q", "--set", "compare=[" + strategy + "]"})["results"][0];
  CHECK(run["step_ms"] == advised["step_ms"]);
  CHECK(run["memory"]["peak_bytes"] == advised["peak_memory_bytes"]);
  CHECK(run["exposed_ms"].get<double>() == Approx(advised["exposed_ms"].get<double>()));
  // A scenario that has it already is told to keep it.
  const Json kept = with_keys({"tune", file, "-q"});
  CHECK(kept["pays"] == false);
}

TEST_CASE("tune of a ZeRO refuses what is of buckets alone", "[tools][zero]") {
  const Scratch scratch;
  const std::string file = zero_file(scratch, "{strategy: zero2}");
  refused({"tune", file, "--largest-bucket", "64MiB"},
          "--largest-bucket 64MiB: is of buckets, and training.strategy is zero2");
}

}  // namespace ddpsim
