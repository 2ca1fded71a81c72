// DDP's modes predicted and run for real, on Gloo: the same collectives, the same bytes, the right
// gradients.
#include <catch2/catch.hpp>

#include "tests/tools/jobs.hpp"

namespace ddpsim {
namespace {

/// With an embedding whose gradient is sparse, a parameter that gets none, and a batch norm's
/// buffers.
const char* profile =
    "format: ddpsim.workload/1\n"
    "source: a test\n"
    "forward: 1 ms\n"
    "backward: 2 ms\n"
    "optimizer: 0.2 ms\n"
    "parameters:\n"
    "  - {name: embedding, shape: [300, 16], sparse: true, rows: 40, ready: 2 ms}\n"
    "  - {name: 1.weight, shape: [64, 64], ready: 1.5 ms}\n"
    "  - {name: 1.bias, shape: [64], ready: 1.5 ms}\n"
    "  - {name: 2.weight, shape: [128, 64], ready: 0.5 ms}\n"
    "  - {name: 2.bias, shape: [128], ready: 0.5 ms}\n"
    "  - {name: idle, shape: [32], unused: true}\n"
    "buffers: [{tensors: 4, bytes: 1024}, {tensors: 2, bytes: 16}]\n";

const char* scenario =
    "name: modes\n"
    "workload: {model: p.yaml}\n"
    "cluster: {device: generic-cpu, launch: sync, ranks_per_node: 3,\n"
    "  intra_node: {latency: 30 us, bandwidth: 1 GB/s}}\n"
    "training: {bucket_cap: 16 KiB, first_bucket_cap: 4 KiB, find_unused_parameters: true}\n"
    "compare: [bucketed]\n";

struct Profiled {
  Scratch scratch;
  std::vector<std::string> calibration;  ///< flags

  Profiled() {
    scratch.write("p.yaml", profile);
    scratch.write("s.yaml", scenario);
  }

  void calibrate() {
    const Outcome outcome = ddpsim({"calibrate", "s.yaml", "--backend", "threads", "--ranks", "3",
                                    "--repeats", "2", "--smallest", "128 KiB", "--largest",
                                    "256 KiB", "--timeout", "60 s", "-o", "c.yaml", "--quiet"},
                                   scratch.folder());
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    calibration = {"--calibration", "c.yaml"};
  }

  Outcome validated(const std::vector<std::string>& settings) const {
    std::vector<std::string> words{"validate",  "s.yaml",  "--backend", "threads",   "--ranks",
                                   "3",         "--steps", "2",         "--warm-up", "1",
                                   "--timeout", "60 s",    "--quiet",   "--json",    "-"};
    words.insert(words.end(), calibration.begin(), calibration.end());
    for (const std::string& setting : settings) {
      words.emplace_back("--set");
      words.push_back((setting.starts_with("cluster.") ? "" : "training.") + setting);
    }
    return ddpsim(words, scratch.folder());
  }
};

}  // namespace

TEST_CASE("each mode of DDP sends for real what was predicted", "[tools][modes]") {
  Profiled profiled;
  profiled.calibrate();
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {},
           {"gradient_as_bucket_view=true"},
           {"gradient_as_bucket_view=true", "pytorch='1.13'"},
           {"broadcast_buffers=false"},
           {"skip_all_reduce_unused_params=true"},
           {"batched_grad_copy=true"},
           {"batched_grad_copy=true", "gradient_as_bucket_view=true"},
           {"static_graph=true"},
           {"static_graph=true", "iteration=1"},
           {"static_graph=true", "iteration=2"},
           {"static_graph=true", "iteration=3"},
           {"last_bucket_cap=true", "static_graph=true"},
           {"bucket_caps=[8 KiB, 64 KiB]"},
           {"micro_batches=3", "no_sync=true"},
           {"join=true"},
           {"join={joined_ranks: 1}"},
           {"join={joined_ranks: 2, throw_on_early_termination: true}"},
           {"join={joined_ranks: 1, divide_by_initial_world_size: false}"},
           {"cluster.collectives_at_once=2"},
           {"cluster.collectives_at_once=2", "join=true"},
           {"delay_all_reduce={parameters: ['2.*'], hook: embedding}"},
           {"delay_all_reduce={parameters: ['2.*'], hook: 1.bias}", "static_graph=true",
            "iteration=1"}}) {
    std::string mode;
    for (const std::string& setting : settings) mode += setting + " ";
    CAPTURE(mode);
    const Outcome outcome = profiled.validated(settings);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const Json result = outcome.json()["results"].back();
    const Json &predicted = result["predicted"], &measured = result["measured"];
    CHECK(predicted["collectives"] == measured["collectives"]);
    CHECK(predicted["wire_bytes"] == measured["wire_bytes"]);
    CHECK(measured["wire_bytes"] > 40 * (16 * 4 + 8));  // the sparse gradient alone
    CHECK(result["gradients"]["identical"] == true);
  }
}

TEST_CASE("what a mode cannot do for real is refused before anything is measured",
          "[tools][modes]") {
  const Profiled profiled;
  const auto refused = [&](const std::vector<std::string>& settings) {
    const Outcome outcome = profiled.validated(settings);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(refused({"micro_batches=2"}), Catch::Contains("set training.no_sync: true"));
  CHECK_THAT(refused({"join={joined_ranks: 3}"}), Catch::Contains("joined_ranks is 3, of 3 ranks"));
}

TEST_CASE("no_sync with one micro-batch is a note: a sweep over micro-batches goes on",
          "[tools][modes]") {
  const Scratch scratch;
  scratch.write("s.yaml",
                "workload: {model: {family: mlp, widths: [64, 64]}, batch: 8}\ncluster: {device: "
                "a100-80, ranks_per_node: 2, intra_node: nvlink3}\ntraining: {no_sync: true}\n");
  const auto step = [&](const std::string& setting) {
    const Outcome outcome =
        ddpsim({"run", "s.yaml", "--set", setting, "--json", "-"}, scratch.folder());
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK((outcome.err.find("note: training.no_sync: there is one micro-batch, which always "
                            "communicates") != std::string::npos) ==
          (setting != "training.micro_batches=2"));
    return outcome.json()["results"].back()["step_ms"].get<double>();
  };
  CHECK(step("training.micro_batches=1") == step("training.no_sync=true"));
  CHECK(step("training.micro_batches=2") > step("training.micro_batches=1"));
  const Outcome swept = ddpsim(
      {"run", "s.yaml", "--vary", "training.micro_batches=1,2,4", "--csv", "-"}, scratch.folder());
  CHECK(swept.code == 0);
}

}  // namespace ddpsim
