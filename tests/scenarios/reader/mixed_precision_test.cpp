#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/parallel/passes_of.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace mixed_precision_test {
namespace {

/// A scenario of a workload and a policy, which stands in line 3.
std::string text(const std::string& workload, const std::string& policy,
                 const std::string& device = "h100-sxm") {
  return fmt::format(
      "workload: {}\ncluster: {{device: {}, ranks_per_node: 2, intra_node: nvlink4}}\n"
      "training: {{strategy: fsdp, mp_policy: {}}}\n",
      workload, device, policy);
}

Scenario read(const Scratch& scratch, const std::string& workload, const std::string& policy) {
  return read_scenario(scratch.write("s.yaml", text(workload, policy)));
}

bool all_are(const Workload& workload, DType type) {
  return std::ranges::all_of(workload.parameters,
                             [&](const Parameter& each) { return each.dtype == type; });
}

bool casts_weights(const Workload& workload) {
  return std::ranges::any_of(workload.layers, [](const Layer& layer) {
    return std::ranges::any_of(layer.forward, [](const Kernel& kernel) {
      return kernel.name.find(".cast") != std::string::npos;
    });
  });
}

/// A product, and a parameter in fp32. `compute`: a line that says what autocast makes of it.
std::string described(const std::string& compute) {
  return "format: ddpsim.workload/2\nsource: by hand\nbatch: 8\ndtype: fp32\n" + compute +
         "kernels:\n"
         "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, read: 9216, written: 2048}\n"
         "layers:\n  - {name: a, forward: [0], backward: [0, 0]}\n"
         "parameters:\n  - {name: a.weight, shape: [64, 32], layer: 0, after: 1}\n";
}

}  // namespace

TEST_CASE("under mp_policy fsdp's passes are those of the same network in param_dtype",
          "[scenarios][mixed_precision]") {
  const Scratch scratch;
  const Scenario scenario =
      read(scratch, "{model: gpt2, batch: 2, sequence: 128, compute: bf16, optimizer: sgd}",
           "{param_dtype: bf16, reduce_dtype: fp32}");
  CHECK(scenario.training.mp_policy == MixedPrecision{DType::bf16, DType::fp32});
  CHECK(all_are(scenario.workload, DType::fp32));
  CHECK(casts_weights(scenario.workload));
  REQUIRE(scenario.workload.cast);
  const Workload& cast = *scenario.workload.cast;
  CHECK(all_are(cast, DType::bf16));
  CHECK(!casts_weights(cast));
  CHECK(main_format(cast) == DType::bf16);
  CHECK(cast.elements() == scenario.workload.elements());
  CHECK(cast.layers.front().forward.front().by_class.has_value());
  Training training = scenario.training;
  CHECK(&passes_of(scenario.workload, training) == &cast);
  CHECK(&passes_of(scenario.workload, training.without_communication()) == &cast);
  training.strategy = Strategy::bucketed;
  CHECK(&passes_of(scenario.workload, training) == &scenario.workload);
  CHECK(&passes_of(scenario.workload, training.without_communication()) == &scenario.workload);
}

TEST_CASE("nothing is cast to the type that parameters are kept in",
          "[scenarios][mixed_precision]") {
  const Scratch scratch;
  const std::string narrow = "{model: gpt2, batch: 2, sequence: 128, dtype: bf16}";
  CHECK(!read(scratch, narrow, "{param_dtype: bf16}").workload.cast);
  CHECK(read(scratch, narrow, "{param_dtype: fp32}").workload.cast);
  const std::string wide = "{model: {family: mlp, widths: [8, 8]}, batch: 2}";
  CHECK(!read(scratch, wide, "{reduce_dtype: bf16}").workload.cast);
  CHECK(!read(scratch, wide, "{}").workload.cast);
  CHECK(read(scratch, wide, "{param_dtype: fp16}").workload.cast);
}

TEST_CASE("a model described under autocast to param_dtype is taken as it is, with a note",
          "[scenarios][mixed_precision]") {
  const Scratch scratch;
  scratch.write("d.yaml", described("compute: bf16\n"));
  const Scenario scenario = read(scratch, "{model: d.yaml}", "{param_dtype: bf16}");
  REQUIRE(scenario.workload.cast);
  CHECK(all_are(*scenario.workload.cast, DType::bf16));
  CHECK(scenario.workload.cast->layers.size() == 1);
  REQUIRE(scenario.described);
  CHECK_THAT(scenario.described->notes.back(),
             Catch::Matchers::Contains("described under autocast to bf16"));
}

TEST_CASE("a policy that nothing is known of is refused in one line",
          "[scenarios][mixed_precision]") {
  const Scratch scratch;
  const auto holds = [](const char* words) { return Catch::Matchers::Contains(words); };
  const std::string model = "{model: gpt2, batch: 2, sequence: 128}";
  scratch.write("d.yaml", described(""));
  CHECK_THAT(
      refusal(scratch, text("{model: d.yaml}", "{param_dtype: bf16}")),
      holds("s.yaml:3:53: training.mp_policy.param_dtype: d was described with parameters") &&
          holds("ddpsim describe --autocast bf16"));
  scratch.write("p.yaml",
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 8 ms\nparameters:\n"
                "  - {name: a, shape: [64], ready: 8 ms}\n");
  CHECK_THAT(refusal(scratch, text("{model: p.yaml}", "{param_dtype: fp16}")),
             holds("p was measured with parameters that are not fp16"));
  CHECK_THAT(refusal(scratch, text(model, "{param_dtype: tf32}")),
             holds("training.mp_policy.param_dtype: ") && holds("bf16, fp16, fp32"));
  CHECK_THAT(refusal(scratch, text(model, "{output_dtype: fp32}")),
             holds("training.mp_policy.output_dtype: unknown key") &&
                 holds("known: param_dtype, reduce_dtype"));
  CHECK_THAT(refusal(scratch, text(model, "bf16")), holds("training.mp_policy"));
  CHECK_THAT(refusal(scratch, text(model, "{param_dtype: bf16}", "v100")),
             holds("does not multiply bf16: choose another type"));
}

}  // namespace mixed_precision_test
}  // namespace ddpsim
