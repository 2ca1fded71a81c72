// Does it pay? Switches of sharded steps, each beside what was published of it: its direction, and
// about its size.

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace shard_switches_test {
namespace {

/// A step of Llama 3 8B under fsdp, in bf16.
struct ShardedStep {
  std::string cluster;
  std::string sequence = "8192";
  std::string training = "";

  std::string text() const {
    return "workload: {model: llama3-8b, batch: 1, sequence: " + sequence +
           ", compute: bf16, activation_checkpointing: full}\ncluster: " + cluster +
           "\ntraining: {strategy: fsdp, mp_policy: {param_dtype: bf16, reduce_dtype: fp32}" +
           training + "}\ncompare: [fsdp]\n";
  }
};

Json result_of(const ShardedStep& step, const std::string& setting = "") {
  const Scratch scratch;
  std::vector<std::string> words{"run", scratch.write("s.yaml", step.text()).string(), "-q",
                                 "--json", "-"};
  if (!setting.empty()) words.insert(words.end(), {"--set", setting});
  const Outcome outcome = ddpsim(words);
  CAPTURE(step.text(), setting, outcome.err);
  REQUIRE(outcome.code == 0);
  return Json::parse(outcome.out)["results"][0];
}

/// How much longer a step takes with the setting, as a share.
double longer(const ShardedStep& step, const std::string& setting, const char* part = "step_ms") {
  return result_of(step, setting)[part].get<double>() / result_of(step)[part].get<double>() - 1;
}

const ShardedStep eight_h100{"dgx-h100"},
    four_gb200{"{device: gb200, ranks_per_node: 4, intra_node: nvlink5}"};

}  // namespace

TEST_CASE("gathers by copy engines pay where they hide, and cost where steps wait for them",
          "[tools][shard_switches]") {
  const std::string zero = "cluster.collectives={cta_policy: zero}";
  // Llama 3 8B on four GB200 was 1.1 to 2.3 % quicker with fewer multiprocessors for gathers
  // (github.com/pytorch/torchtitan/pull/3105), another model 2.4 % with none
  // (github.com/pytorch/pytorch/pull/179937).
  const double hidden = longer(four_gb200, zero);
  CHECK(hidden < -0.004);
  CHECK(hidden > -0.04);
  // 64 ranks in a domain of NVLink copy to 63 others: a loss on 128 GPUs
  // (github.com/NVIDIA/Megatron-LM/pull/5657).
  const ShardedStep many{
      "{device: gb200, nodes: 2, ranks_per_node: 64, intra_node: nvlink5, inter_node: {base: "
      "ib-ndr, nics: 64}}",
      "2048", ", replicate: 2"};
  CHECK(longer(many, zero) > 0.03);
}

TEST_CASE("with one queue backward waits for reduce-scatters, and forward for next to nothing",
          "[tools][shard_switches]") {
  // github.com/verl-project/verl-omni/issues/421: gathers overlapped, reduce-scatters did not.
  const std::string one = "training.cuda_device_max_connections=1";
  CHECK(longer(eight_h100, one, "forward_ms") < 0.05);
  CHECK(longer(eight_h100, one, "backward_ms") > 0.03);
  CHECK(longer(eight_h100, one) > 0.03);
  CHECK(longer(eight_h100, "training.cuda_device_max_connections=8") == 0);
}

TEST_CASE("reduce-scatters in bf16 take half of the time on the wire", "[tools][shard_switches]") {
  // Llama 70B, which waited for fp32 gradients, took 2559 ms with bf16 where it had taken 3300
  // (github.com/NVIDIA/Megatron-LM/pull/3067, with other changes besides). Here kernels hide most.
  const std::string bf16 = "training.mp_policy={param_dtype: bf16, reduce_dtype: bf16}";
  CHECK(longer(eight_h100, bf16) < -0.01);
  // Of two gathers in bf16 and a scatter in fp32, the scatter is half of all.
  CHECK(longer(eight_h100, bf16, "communication_ms") == Approx(-0.25).margin(0.05));
}

TEST_CASE("fewer channels leave multiprocessors to kernels, until steps wait for them",
          "[tools][shard_switches]") {
  // Megatron-LM gives gathers and reduce-scatters of NVLink 4 and 5 multiprocessors with buffers
  // that NCCL knows (megatron/core/distributed/distributed_data_parallel_config.py).
  const auto channels = [](int count) {
    return "cluster.collectives={channels: " + std::to_string(count) + "}";
  };
  CHECK(longer(eight_h100, channels(8)) < 0);
  CHECK(longer(eight_h100, channels(8), "communication_ms") > 0.1);
  CHECK(longer(eight_h100, channels(1)) > 0.1);
}

TEST_CASE("copy engines are NCCL's and of GPUs, and are named", "[tools][shard_switches]") {
  const auto refusal = [](const std::string& collectives, const std::string& cluster) {
    const Scratch scratch;
    return ddpsim({"run", scratch.write("s.yaml", ShardedStep{cluster}.text()).string(), "--set",
                   "cluster.collectives={" + collectives + "}"});
  };
  const Outcome ring = refusal("law: alpha-beta, cta_policy: zero", "dgx-h100");
  CHECK(ring.code == 2);
  CHECK_THAT(ring.err, Catch::Contains("cta_policy is NCCL's: take law: nccl"));
  const Outcome cpu =
      refusal("cta_policy: zero",
              "{device: generic-cpu, nodes: 2, ranks_per_node: 1, inter_node: ethernet-1g}");
  CHECK(cpu.code == 2);
  CHECK_THAT(cpu.err, Catch::Contains("cta_policy is NCCL's, which needs a CUDA device"));
  const Scratch scratch;
  const Outcome told = ddpsim({"schedule", scratch.write("s.yaml", eight_h100.text()).string(),
                               "--set", "cluster.collectives={cta_policy: zero}", "--json", "-"});
  CHECK_THAT(told.out, Catch::Contains("copy_engines"));
}

}  // namespace shard_switches_test
}  // namespace ddpsim
