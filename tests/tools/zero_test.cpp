#include <algorithm>
#include <cstdint>
#include <map>

#include <catch2/catch.hpp>

#include "tests/tools/answers.hpp"
#include "tests/tools/jobs.hpp"

namespace ddpsim {
namespace {

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("run prints the ladder: each rung keeps less on a rank", "[tools][zero]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("ladder.yaml",
                                      "workload: {model: gpt2, batch: 4, sequence: 1024}\n"
                                      "cluster: dgx-h100\n"
                                      "compare: [naive, flat, overlap, bucketed, zero1, zero2, "
                                      "zero3, fsdp]\n")
                               .string();
  const Json results = json_of({"run", file})["results"];
  REQUIRE(results.size() == 8);
  std::map<std::string, Json> by;
  for (const Json& each : results) by[each["strategy"]] = each;
  const auto of = [&](const char* strategy, const char* key) {
    return by.at(strategy)["memory"][key].get<double>();
  };
  // Eight ranks: a share of the optimizer's state each; of whole parameters one has the embedding.
  CHECK(of("zero1", "optimizer_bytes") < of("bucketed", "optimizer_bytes") / 3);
  for (const char* each : {"zero2", "zero3", "fsdp"})
    CHECK(of(each, "optimizer_bytes") ==
          Approx(of("bucketed", "optimizer_bytes") / 8).epsilon(0.01));
  CHECK(of("zero2", "parameters_bytes") ==
        Approx(of("bucketed", "parameters_bytes")).epsilon(0.001));
  for (const char* each : {"zero1", "zero2", "zero3", "fsdp"}) {
    CHECK(by.at(each)["step_low_ms"].is_null() == (std::string(each) != "fsdp"));
    CHECK(by.at(each)["exposed_ms"] > 0);
    CHECK(by.at(each)["optimizer_ms"] < 0.4 * by.at("bucketed")["optimizer_ms"].get<double>());
  }
  // DeepSpeed's stage 2 hides nothing unless it is told to.
  const Json told = json_of({"run", file, "--set",
                             "training.zero2={overlap_comm: true, "
                             "reduce_bucket_size: 20000000}"})["results"];
  CHECK(told[5]["strategy"] == "zero2");
  CHECK(told[5]["exposed_ms"] < by.at("zero2")["exposed_ms"]);
}

TEST_CASE("Of a ZeRO, --why says what is exposed, and by what", "[tools][zero][why]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("ladder.yaml",
                                      "workload: {model: gpt2, batch: 4, sequence: 1024}\n"
                                      "cluster: dgx-h100\n"
                                      "training: {zero2: {reduce_bucket_size: 20000000}}\n"
                                      "compare: [bucketed, zero1, zero2, zero3]\n")
                               .string();
  const auto told = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", file, "--why"};
    words.insert(words.end(), more.begin(), more.end());
    std::map<std::string, Json> by;
    const Json results = json_of(words)["results"];
    for (const Json& each : results) by[each["strategy"]] = each;
    return by;
  };
  const auto by_kernels = [](const Json& result) {
    double sum = 0;
    for (const Json& bucket : result["why"]["buckets"])
      sum += bucket["exposed_by_ms"].value("kernels_wait", 0.0);
    return sum;
  };
  const auto results = told({});
  for (const auto& [strategy, result] : results) {
    CAPTURE(strategy);
    const Json& why = result["why"];
    const bool is_behind = strategy == "zero1" || strategy == "zero2";
    REQUIRE(why.contains("behind_update") == is_behind);
    const double behind = is_behind ? why["exposed_behind_update_ms"].get<double>() : 0;
    CHECK(why["exposed_in_buckets_ms"].get<double>() + behind +
              why["exposed_elsewhere_ms"].get<double>() ==
          Approx(result["exposed_ms"].get<double>()));
    if (!is_behind) continue;
    // Nothing is left to hide what is sent behind the update.
    const Json& sent = why["behind_update"];
    CHECK(sent["kind"] == "updated_gather");
    CHECK(behind > 0);
    CHECK(sent["exposed_ms"].get<double>() == behind);
    CHECK(sent["exposed_by_ms"]["itself"].get<double>() > 0.9 * behind);
  }
  // A broadcast for each of GPT-2's 148 parameters; one gather of parts, of which a rank sends
  // seven eighths of all.
  const Json& torch = results.at("zero1")["why"]["behind_update"];
  CHECK(torch["operation"] == "broadcast");
  CHECK(torch["count"] == 148);
  CHECK(torch["port_bytes"] == std::int64_t{4} * 124'439'808);
  const Json& deepspeed = results.at("zero2")["why"]["behind_update"];
  CHECK(deepspeed["operation"] == "all-gather");
  CHECK(deepspeed["count"] == 1);
  CHECK(deepspeed["port_bytes"] == std::int64_t{7} * 4 * 124'439'808 / 8);
  // Kernels wait for what stage 2 reduces, unless it has a stream of its own.
  CHECK(by_kernels(results.at("zero2")) > 0);
  CHECK(by_kernels(results.at("bucketed")) == 0);
  CHECK(by_kernels(told({"--set", "training.zero2.overlap_comm=true"}).at("zero2")) == 0);
  CHECK(results.at("zero3")["why"]["units"].size() > 0);
  const std::string text = ddpsim({"run", file, "--why"}).out;
  CHECK_THAT(text, Contains("zero1: 148 broadcasts of updated parameters, one after the other") &&
                       Contains("zero2: 1 all-gather of updated parameters behind the update") &&
                       Contains("\n  kernels wait  "));
}

TEST_CASE("real ranks run every ZeRO as it is predicted", "[tools][zero]") {
  const std::string backend = GENERATE("threads", "gloo");
  const Scratch scratch;
  const std::string json = scratch.path("result.json").string();
  const std::filesystem::path example = example_in(scratch);
  Words words{"validate",  example.string(),
              "--backend", backend,
              "--ranks",   "2",
              "--set",     "compare=[none, zero1, zero2, zero3]",
              "--set",     "workload.model={family: mlp, widths: [200, 150, 100]}",
              "--set",     "workload.batch=4",
              "--set",     "workload.optimizer=adamw",
              "--set",     "training.zero1={variant: megatron, overlap_grad_reduce: true}",
              "--set",     "training.zero3={stage3_param_persistence_threshold: 0}",
              "--steps",   "3",
              "--warm-up", "1",
              "--repeats", "2",
              "--timeout", "60 s",
              "--json",    json};
  for (const std::string& word : quickly_calibrated(example)) words.push_back(word);
  const Outcome outcome = ddpsim(words);
  CAPTURE(backend, outcome.err);
  REQUIRE(outcome.code == 0);
  for (const Json& each : Json::parse(content_of(json)).at("results")) {
    if (each["strategy"] == "none") continue;
    CAPTURE(each.dump());
    CHECK(each.at("gradients").at("wrong") == 0);
    CHECK(each.at("gradients").at("worst_over_tolerance") > 0);
    const Json &predicted = each.at("predicted"), &measured = each.at("measured");
    for (const char* key : {"collectives", "wire_bytes"})
      CHECK(predicted.at(key) == measured.at(key));
    CHECK(predicted.at("collectives") > 0);
    CHECK(measured.at("step_ms") > 0);
  }
}

}  // namespace ddpsim
