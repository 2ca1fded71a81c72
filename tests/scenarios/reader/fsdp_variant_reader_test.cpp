#include <catch2/catch.hpp>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

std::string with_fsdp(const std::string& keys) {
  return "workload: {model: gpt2, batch: 2, sequence: 128}\n"
         "cluster: dgx-h100\n"
         "training:\n  strategy: fsdp\n  " +
         keys + "\ncompare: [fsdp]\n";
}

FsdpVariantSettings settings(const std::string& keys) {
  const Scratch scratch;
  return read_scenario(scratch.write("s.yaml", with_fsdp(keys))).training.fsdp;
}

}  // namespace

TEST_CASE("FullyShardedDataParallel has its own options, by their names", "[scenarios][fsdp]") {
  CHECK(settings("micro_batches: 1") == FsdpVariantSettings{});
  CHECK(settings("fsdp: {variant: fully_shard}").variant == FsdpVariant::fully_shard);
  const FsdpVariantSettings usual = settings("fsdp: {variant: fsdp1}");
  CHECK(usual.sharding_strategy == ShardingStrategy::full_shard);
  CHECK(usual.backward_prefetch == BackwardPrefetch::pre);
  CHECK_FALSE(usual.forward_prefetch);
  CHECK(usual.limit_all_gathers);
  CHECK_FALSE(usual.use_orig_params);
  const FsdpVariantSettings others = settings(
      "fsdp: {variant: fsdp1, sharding_strategy: SHARD_GRAD_OP, backward_prefetch: BACKWARD_POST, "
      "forward_prefetch: true, limit_all_gathers: false, use_orig_params: true}");
  CHECK(others.sharding_strategy == ShardingStrategy::shard_grad_op);
  CHECK(others.backward_prefetch == BackwardPrefetch::post);
  CHECK(others.forward_prefetch);
  CHECK_FALSE(others.limit_all_gathers);
  CHECK(others.use_orig_params);
  CHECK(settings("fsdp: {variant: fsdp1, backward_prefetch: none}").backward_prefetch ==
        BackwardPrefetch::none);
  CHECK(settings("replicate: 2\n  fsdp: {variant: fsdp1, sharding_strategy: HYBRID_SHARD}")
            .sharding_strategy == ShardingStrategy::hybrid_shard);
}

TEST_CASE("an option of the other variant is refused where it stands", "[scenarios][fsdp]") {
  const Scratch scratch;
  CHECK(refusal(scratch, with_fsdp("fsdp: {use_orig_params: true}")) ==
        "s.yaml:5:27: training.fsdp.use_orig_params: use_orig_params is a key of variant fsdp1, "
        "and this is fully_shard: take it out, or write variant: fsdp1");
  for (const std::string key :
       {"reshard_after_forward: true", "reshard_after_backward: false", "forward_prefetch: 1",
        "backward_prefetch: 2", "requires_all_reduce: last", "reduce_scatter_max_input_buffers: 2",
        "separate_reduce_scatter_group: true",
        "offload_policy: {copies: 25 GB/s, update: 850 ms}"}) {
    const std::string name = key.substr(0, key.find(':'));
    CAPTURE(name);
    CHECK(refusal(scratch, with_fsdp("fsdp: {variant: fsdp1}\n  " + key)) ==
          "s.yaml:6:" + std::to_string(name.size() + 5) + ": training." + name + ": " + name +
              " is a key of variant fully_shard, and training.fsdp.variant is fsdp1: take it out, "
              "or write variant: fully_shard");
  }
}

TEST_CASE("FullyShardedDataParallel wraps one module, with one strategy for all",
          "[scenarios][fsdp]") {
  const Scratch scratch;
  const std::string variant = "fsdp: {variant: fsdp1}\n  units: ";
  CHECK(refusal(scratch, with_fsdp(variant + "[transformer.wpe+transformer.wte]")) ==
        "s.yaml:6:11: training.units: FullyShardedDataParallel wraps one module: write the "
        "modules one by one");
  CHECK(refusal(scratch, with_fsdp(variant +
                                   "[{modules: transformer.h.*, reshard_after_forward: false}]")) ==
        "s.yaml:6:11: training.units: settings of single units are of variant fully_shard: name "
        "the module alone");
}

TEST_CASE("replicas and hybrid strategies come together", "[scenarios][fsdp]") {
  const Scratch scratch;
  CHECK(refusal(scratch, with_fsdp("fsdp: {variant: fsdp1, sharding_strategy: HYBRID_SHARD}")) ==
        "s.yaml:5:45: training.fsdp.sharding_strategy: HYBRID_SHARD shards within each of several "
        "replicas: write how many as training.replicate");
  CHECK(refusal(scratch, with_fsdp("replicate: 2\n  fsdp: {variant: fsdp1}")) ==
        "s.yaml:5:14: training.replicate: FULL_SHARD has no replicas: write sharding_strategy: "
        "HYBRID_SHARD in training.fsdp, or take this out");
}

}  // namespace ddpsim
