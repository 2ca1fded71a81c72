// Each comm hook predicted and run for real: the same collectives, the same bytes, counted by the
// backend as it hands them over.
#include <catch2/catch.hpp>

#include "tests/tools/jobs.hpp"

namespace ddpsim {
namespace {

/// A model with matrices worth compressing, and what was measured of this machine for it.
struct Hooked {
  Scratch scratch;
  std::string scenario;

  Hooked() {
    std::string text = small_mlp;
    text.replace(text.find("[64, 96, 64, 32]"), 16, "[128, 256, 128, 64]");
    text.replace(text.find("16 KiB"), 6, "96 KiB");
    scratch.write("s.yaml", text + "compare: [bucketed]\n");
    const Outcome outcome = ddpsim({"calibrate", "s.yaml", "--backend", "threads", "--ranks", "2",
                                    "--repeats", "2", "--smallest", "128 KiB", "--largest",
                                    "256 KiB", "--timeout", "60 s", "-o", "c.yaml", "--quiet"},
                                   scratch.folder());
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
  }

  Json validated(const std::string& hook,
                 const std::string& more = "training.micro_batches=1") const {
    const Outcome outcome = ddpsim({"validate",
                                    "s.yaml",
                                    "--backend",
                                    "threads",
                                    "--ranks",
                                    "2",
                                    "--steps",
                                    "2",
                                    "--warm-up",
                                    "1",
                                    "--timeout",
                                    "60 s",
                                    "--calibration",
                                    "c.yaml",
                                    "--set",
                                    "training.comm_hook=" + hook,
                                    "--set",
                                    more,
                                    "--quiet",
                                    "--json",
                                    "-"},
                                   scratch.folder());
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.json();
  }
};

}  // namespace

TEST_CASE("each comm hook sends for real what was predicted", "[tools][comm_hooks]") {
  const Hooked hooked;
  for (const std::string hook : {"none",
                                 "allreduce",
                                 "noop",
                                 "fp16_compress",
                                 "bf16_compress",
                                 "{powersgd: {rank: 1}}",
                                 "{powersgd: {rank: 4}}",
                                 "{powersgd: {rank: 2, error_feedback: false, warm_start: false}}",
                                 "batched_powersgd",
                                 "quantization_pertensor",
                                 "quantization_perchannel",
                                 "post_local_sgd",
                                 "{post_local_sgd: {subgroup: 1}}",
                                 "optimizer_overlap",
                                 "zero_step",
                                 "zero_step_interleaved",
                                 "{fp16_compress_wrapper: {powersgd: {rank: 2}}}",
                                 "{bf16_compress_wrapper: allreduce}",
                                 "[{cast: fp16}, {scale: 1/ranks}, all_reduce]",
                                 "[{topk: 5%}, all_gather, {scale: 1/ranks}]",
                                 "[reduce_scatter, all_gather, {scale: 1/ranks}]",
                                 "[all_gather]",
                                 "[broadcast]"}) {
    CAPTURE(hook);
    const Json json = hooked.validated(hook);
    const Json& result = json["results"].back();
    const Json &predicted = result["predicted"], &measured = result["measured"];
    CHECK(predicted["collectives"] == measured["collectives"]);
    CHECK(predicted["wire_bytes"] == measured["wire_bytes"]);
    CHECK((predicted["collectives"] == 0) == (hook == "noop"));
    CHECK(measured["step_ms"] > 0);
    // Two hooks leave each rank its own gradients; broadcast gives rank 0's to all.
    const bool each_its_own = hook == "noop" || hook.find("subgroup: 1") != std::string::npos;
    CHECK(result["gradients"]["identical"] == !each_its_own);
    CHECK(result["gradients"]["overflows"] == 0);
  }
}

TEST_CASE("an overflow of fp16 is reported, one of bf16 does not happen", "[tools][comm_hooks]") {
  const Hooked hooked;
  const auto validate = [&](const std::string& hook) {
    return ddpsim(
        {"validate", "s.yaml", "--backend", "threads", "--ranks", "2", "--steps", "2", "--warm-up",
         "1", "--timeout", "60 s", "--calibration", "c.yaml", "--set", "training.comm_hook=" + hook,
         "--set", "training.hooks=[{scale: {parameter: '*', factor: 1e6}}]"},
        hooked.scratch.folder());
  };
  const Outcome narrow = validate("fp16_compress");
  CHECK(narrow.code == 1);
  CHECK_THAT(narrow.err, Catch::Contains("became infinite in 16 bit"));
  CHECK_THAT(narrow.out, Catch::Contains("OVERFLOW: ") && Catch::Contains("take bf16_compress"));
  const Outcome wide = validate("bf16_compress");
  CHECK(wide.code == 0);
  CHECK_THAT(wide.out, !Catch::Contains("OVERFLOW"));
}

TEST_CASE("a comm hook runs for the ranks there are, whatever the scenario's cluster",
          "[tools][comm_hooks]") {
  const Hooked hooked;
  for (const auto& [hook, cluster] : std::vector<std::pair<std::string, std::string>>{
           {"[reduce_scatter, all_gather, {scale: 1/ranks}]", "cluster.ranks_per_node=8"},
           {"[reduce_scatter, all_gather, {scale: 1/ranks}]", "cluster.ranks_per_node=1"},
           {"post_local_sgd",
            "cluster={device: generic-cpu, launch: sync, nodes: 2, "
            "ranks_per_node: 1, inter_node: ethernet-10g}"},
           {"quantization_perchannel", "cluster.ranks_per_node=8"}}) {
    CAPTURE(hook, cluster);
    const Json result =
        hooked.validated(hook, cluster)["results"].back();  // right gradients: exit 0
    CHECK(result["predicted"]["wire_bytes"] == result["measured"]["wire_bytes"]);
    CHECK(result["gradients"]["identical"] == true);
  }
}

TEST_CASE("a comm hook divides by all ranks, also where some have no inputs",
          "[tools][comm_hooks]") {
  const Hooked hooked;
  for (const std::string hook : {"allreduce", "fp16_compress", "{powersgd: {rank: 1}}", "none"}) {
    CAPTURE(hook);
    const Json result =
        hooked
            .validated(
                hook,
                "training.join={joined_ranks: 1, divide_by_initial_world_size: false}")["results"]
            .back();
    CHECK(result["gradients"]["identical"] == true);
    CHECK(result["predicted"]["collectives"] == result["measured"]["collectives"]);
  }
}

TEST_CASE("post-local SGD averages the models for real", "[tools][comm_hooks]") {
  const Hooked hooked;
  const std::string hook = "{post_local_sgd: {start_iteration: 2, period: 3, subgroup: 1}}";
  const Json between = hooked.validated(hook, "training.iteration=5")["results"].back();
  const Json averaging = hooked.validated(hook, "training.iteration=6")["results"].back();
  for (const Json* each : {&between, &averaging}) {
    CHECK((*each)["predicted"]["collectives"] == (*each)["measured"]["collectives"]);
    CHECK((*each)["predicted"]["wire_bytes"] == (*each)["measured"]["wire_bytes"]);
  }
  // All parameters once: 128 x 256, 256 x 128 and 128 x 64 weights, and biases.
  const double parameters = 4 * (128 * 256 + 256 + 256 * 128 + 128 + 128 * 64 + 64);
  CHECK(averaging["measured"]["wire_bytes"].get<double>() -
            between["measured"]["wire_bytes"].get<double>() ==
        parameters);
}

TEST_CASE("a hook's first, plain iterations are run for real too", "[tools][comm_hooks]") {
  const Hooked hooked;
  const Json plain =
      hooked.validated("{powersgd: {start_iteration: 5}}", "training.iteration=4")["results"]
          .back();
  const Json compressed =
      hooked.validated("{powersgd: {start_iteration: 5}}", "training.iteration=7")["results"]
          .back();
  CHECK(plain["measured"]["wire_bytes"] > 5 * compressed["measured"]["wire_bytes"].get<double>());
  for (const Json* each : {&plain, &compressed})
    CHECK((*each)["predicted"]["wire_bytes"] == (*each)["measured"]["wire_bytes"]);
}

}  // namespace ddpsim
