#include <algorithm>
#include <cmath>
#include <cstdint>

#include <catch2/catch.hpp>

#include "tests/tools/answers.hpp"
#include "tests/tools/jobs.hpp"

namespace ddpsim {
namespace {

using Catch::Matchers::Contains;

/// gpt2 on eight H100, what is compared, and more.
std::string sharded(const Scratch& scratch, const std::string& compare,
                    const std::string& training = "") {
  return scratch
      .write("fsdp.yaml",
             "workload: {model: gpt2, batch: 8, sequence: 1024, optimizer: adamw-fused}\n"
             "cluster: dgx-h100\ntraining: {strategy: fsdp" +
                 training + "}\ncompare: " + compare + "\n")
      .string();
}

}  // namespace

TEST_CASE("run puts fsdp beside DDP: its memory in parts, its exposed time, a band of its own",
          "[tools][fsdp]") {
  const Scratch scratch;
  const std::string file = sharded(scratch, "[none, bucketed, fsdp]");
  const Json results = json_of({"run", file})["results"];
  REQUIRE(results.size() == 3);
  const Json &none = results[0], &ddp = results[1], &fsdp = results[2];
  // Eight ranks: each keeps an eighth, but for rows of padding.
  const auto in_eight = [&](const char* key) {
    return 8 * fsdp["memory"][key].get<double>() / ddp["memory"][key].get<double>();
  };
  CHECK(in_eight("optimizer_bytes") == Approx(1).epsilon(0.01));
  CHECK(fsdp["memory"]["parameters_bytes"] < ddp["memory"]["parameters_bytes"]);
  CHECK(fsdp["exposed_ms"] > 0);
  // Most published steps of fully_shard were longer than predicted, and by more than DDP's.
  const auto factor = [](const Json& step, const char* end) {
    return step[end].get<double>() / step["step_ms"].get<double>();
  };
  CHECK(factor(fsdp, "step_low_ms") < 1);
  CHECK(factor(fsdp, "step_high_ms") > factor(ddp, "step_high_ms"));
  CHECK(fsdp["optimizer_ms"] < 0.3 * none["optimizer_ms"].get<double>());
  const Outcome text = ddpsim({"run", file});
  CHECK_THAT(text.out, Contains("sharded steps of this kind were measured") && Contains("; fsdp "));
}

TEST_CASE("schedule names units, and no gradient hooks", "[tools][fsdp]") {
  const Scratch scratch;
  const std::string file = sharded(scratch, "[fsdp]");
  CHECK(json_of({"schedule", file})["hooks"].empty());
  CHECK_THAT(
      ddpsim({"schedule", file, "--tasks"}).out,
      Contains("pre-forward of transformer.h.0") && Contains("all-gather copy-out of the root"));
  CHECK_THAT(ddpsim({"schedule", file, "--program"}).out, Contains("a hook of unit 1"));
}

TEST_CASE("real ranks run units inside blocks as they are predicted", "[tools][fsdp]") {
  const Scratch scratch;
  const std::string json = scratch.path("result.json").string();
  const std::filesystem::path example = example_in(scratch);
  Words words{
      "validate",
      example.string(),
      "--backend",
      "threads",
      "--ranks",
      "2",
      "--set",
      "compare=[none, fsdp]",
      "--set",
      "workload.model={family: llama, layers: 2, d_model: 32, d_ff: 64, heads: 4, kv_heads: 2, "
      "vocabulary: 100}",
      "--set",
      "workload.batch=2",
      "--set",
      "workload.sequence=16",
      "--set",
      "training.units=[model.layers.*.self_attn, model.layers.*.mlp, model.layers.*]",
      "--set",
      "training.reshard_after_forward=true",
      "--steps",
      "3",
      "--warm-up",
      "1",
      "--repeats",
      "2",
      "--timeout",
      "60 s",
      "--json",
      json};
  for (const std::string& word : quickly_calibrated(example)) words.push_back(word);
  const Outcome outcome = ddpsim(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json fsdp = Json::parse(content_of(json)).at("results").at(1);
  CHECK(fsdp.at("strategy") == "fsdp");
  CHECK(fsdp.at("gradients").at("wrong") == 0);
  CHECK(fsdp.at("gradients").at("worst_over_tolerance") > 0);
  // The root, and three units of each block: two gathers and a reduce-scatter of each.
  CHECK(fsdp.at("predicted").at("collectives") == 3 * 7);
  CHECK(fsdp.at("measured").at("collectives") == 3 * 7);
}

TEST_CASE("every output takes a sharded step with micro-batches", "[tools][fsdp]") {
  const Scratch scratch;
  for (const std::string more :
       {"no_sync: true", "no_sync: false",
        "no_sync: true, mp_policy: {param_dtype: bf16, reduce_dtype: fp32}",
        "no_sync: false, mp_policy: {param_dtype: fp16}"}) {
    const std::string file = sharded(scratch, "[fsdp]", ", micro_batches: 2, " + more);
    const auto made = [&](const char* name) { return scratch.path(name).string(); };
    const Outcome outcome =
        ddpsim({"run", file, "--why", "--hooks-log", made("hooks.csv"), "--trace",
                made("trace.json"), "--report", made("page.html"), "--csv", made("steps.csv")});
    CAPTURE(more, outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(content_of(scratch.path("trace.json")), Contains("gather"));
  }
}

TEST_CASE("mixed precision halves what fsdp gathers, and changes no other strategy",
          "[tools][fsdp]") {
  const Scratch scratch;
  const auto written = [&](const char* name, const std::string& policy) {
    return scratch
        .write(name,
               "workload: {model: llama3-8b, batch: 1, sequence: 4096, compute: bf16}\n"
               "cluster: {system: dgx-h100, nodes: 2}\n"
               "training: {strategy: fsdp" +
                   policy + "}\ncompare: [none, bucketed, fsdp]\n")
        .string();
  };
  const std::string plain = written("plain.yaml", ""),
                    mixed = written("mixed.yaml",
                                    ", mp_policy: {param_dtype: bf16, reduce_dtype: fp32}");
  const Json before = json_of({"run", plain})["results"];
  const Json after = json_of({"run", mixed})["results"];
  CHECK(before[0] == after[0]);
  CHECK(before[1] == after[1]);
  const auto bytes = [](const Json& results, const char* key) {
    return results[2]["memory"][key].get<double>();
  };
  // Eight billion parameters in sixteen parts of fp32. Whole and as they were gathered, at most:
  // the root's, which are kept, and a block's; under mixed precision a block's parts in bf16 too.
  const double parameters = 8'030'261'248, root = 1'050'677'248, block = 218'112'000;
  const double parts = 4 * parameters / 16, whole = 2 * (root + block);
  CHECK(bytes(before, "optimizer_bytes") == Approx(2 * parts));
  CHECK(bytes(after, "optimizer_bytes") == Approx(2 * parts));
  CHECK(bytes(before, "parameters_bytes") == Approx(parts + 4 * whole));
  CHECK(bytes(after, "parameters_bytes") == Approx(parts + 2 * whole + 2 * block / 16));
  CHECK(after[2]["step_ms"] < before[2]["step_ms"]);
  CHECK(after[2]["exposed_ms"] > 0);
  // F49 and the check values of llama3-8b: a block's gather and reduce-scatter.
  const Json sent = json_of({"schedule", mixed})["collectives"];
  const auto has = [&](const char* operation, std::int64_t size) {
    return std::ranges::any_of(sent, [&](const Json& each) {
      return each["operation"] == operation && each["bytes"] == size;
    });
  };
  CHECK(has("all-gather", 436'224'000 / 16));
  CHECK(has("reduce-scatter", 872'448'000));
  const std::string trace = scratch.path("trace.json").string();
  REQUIRE(ddpsim({"run", mixed, "--trace", trace}).code == 0);
  CHECK_THAT(content_of(trace), Contains("\"dtype\":\"BFloat16\""));
  CHECK_THAT(ddpsim({"schedule", mixed, "--tasks"}).out, Contains("all-gather cast of the root"));
}

TEST_CASE("real ranks refuse mixed precision of fsdp in one line", "[tools][fsdp]") {
  const Outcome outcome = ddpsim({"validate", shipped("examples/mlp-2ranks.yaml"), "--backend",
                                  "threads", "--ranks", "2", "--set", "compare=[none, fsdp]",
                                  "--set", "training.mp_policy={reduce_dtype: bf16}"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains("training.mp_policy is simulated only: for real, take it out"));
}

TEST_CASE("real ranks run a sharded step as it is predicted", "[tools][fsdp]") {
  const Scratch scratch;
  const std::string backend = GENERATE("threads", "gloo");
  const std::string json = scratch.path("result.json").string();
  const std::filesystem::path example = example_in(scratch);
  Words words{"validate",  example.string(),
              "--backend", backend,
              "--ranks",   "2",
              "--set",     "compare=[none, flat, fsdp]",
              "--set",     "workload.model={family: mlp, widths: [200, 150, 100]}",
              "--set",     "workload.batch=4",
              "--set",     "workload.optimizer=adamw",
              "--steps",   "3",
              "--warm-up", "1",
              "--repeats", "2",
              "--timeout", "60 s",
              "--json",    json};
  for (const std::string& word : quickly_calibrated(example)) words.push_back(word);
  const Outcome outcome = ddpsim(words);
  CAPTURE(backend, outcome.err);
  REQUIRE(outcome.code == 0);
  const Json results = Json::parse(content_of(json)).at("results");
  const auto found =
      std::ranges::find_if(results, [](const Json& each) { return each.at("strategy") == "fsdp"; });
  REQUIRE(found != results.end());
  CHECK(found->at("gradients").at("wrong") == 0);
  CHECK(found->at("gradients").at("worst_over_tolerance") > 0);
  const Json &predicted = found->at("predicted"), &measured = found->at("measured");
  for (const char* key : {"collectives", "wire_bytes"})
    CHECK(predicted.at(key) == measured.at(key));
  CHECK(predicted.at("collectives") == 6);  // of two units, each gathered twice
  CHECK(measured.at("step_ms") > 0);
}

TEST_CASE("ranks of groups across nodes are named in traces", "[tools][fsdp]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("hsdp.yaml",
                                      "workload: {model: gpt2-xl, batch: 4, sequence: 1024}\n"
                                      "cluster: {system: dgx-h100, nodes: 2}\n"
                                      "training: {strategy: fsdp, replicate: 2}\n"
                                      "compare: [none, fsdp]\n")
                               .string();
  const std::string trace = scratch.path("trace.json").string();
  const Outcome outcome = ddpsim({"run", file, "--trace", trace});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string text = content_of(trace);
  CHECK_THAT(text, Contains("\"[0, 8]\"") && Contains("\"[0, 1, 2, 3, 4, 5, 6, 7]\""));
  CHECK_THAT(outcome.out, Contains(", with the passes and the part of the update of fsdp "));
}

TEST_CASE("published sharded steps are met by the laws, and better with one row known",
          "[tools][fsdp][score]") {
  std::vector<std::string> words{"score", "--quiet", "--json", "-"};
  for (const auto& each : std::filesystem::directory_iterator(DDPSIM_TEST_DATA "/sharded"))
    if (each.path().extension() == ".yaml") words.push_back(each.path().string());
  const auto scored = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    const Outcome outcome = ddpsim(more);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out);
  };
  const Json known = scored({}), laws = scored({"--laws-only"});
  CHECK(known["predicted_rows"] == 13);
  CHECK(known["median_error"] < 0.04);
  CHECK(known["ninth_decile_error"] < 0.10);
  CHECK(laws["predicted_rows"] == 23);
  CHECK(laws["median_error"] < 0.15);
  // By the laws all steps on H100 are too short (docs/accuracy.md).
  int on_h100 = 0;
  for (const Json& row : laws["rows"]) {
    const bool is_h100 = row["file"].get<std::string>().find("h100") != std::string::npos;
    on_h100 += is_h100 ? 1 : 0;
    CAPTURE(row["file"], row["label"]);
    CHECK(std::abs(row["error"].get<double>()) < (is_h100 ? 0.30 : 0.12));
    if (is_h100) CHECK(row["error"] < 0);
  }
  CHECK(on_h100 == 10);
}

}  // namespace ddpsim
