#include "scenarios/reader/workload/description_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "scenarios/reader/format/map.hpp"
#include "sim/predict/predict.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace description_reader_test {
namespace {

/// Two layers: a product with a bias and an activation, and a product with a loss.
const std::string good_description =
    "format: ddpsim.workload/2\n"                                                        // 1
    "source: by hand\n"                                                                  // 2
    "batch: 8\n"                                                                         // 3
    "dtype: fp32\n"                                                                      // 4
    "optimizer: sgd-plain\n"                                                             // 5
    "kernels:\n"                                                                         // 6
    "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, read: 9216, written: 2048}\n"  // 7
    "  - {op: add, kind: memory, read: 2304, written: 2048}\n"                           // 8
    "  - {op: relu, kind: memory, read: 2048, written: 2048, launches: 2}\n"             // 9
    "  - {op: sum, kind: memory, read: 100, written: 10}\n"                              // 10
    "layers:\n"                                                                          // 11
    "  - {name: a, forward: [0, 1, 2], backward: [2, [3, 4], 0, 1], kept: 4096}\n"       // 12
    "  - {name: b, forward: [[0, 2], [1, 3]], backward: [1, 0, 2], kept: 1024}\n"        // 13
    "parameters:\n"                                                                      // 14
    "  - {name: a.weight, shape: [64, 32], layer: 0, after: 5}\n"                        // 15
    "  - {name: a.bias, shape: [64], layer: 0, after: 2}\n"                              // 16
    "  - {name: b.weight, shape: [32, 64], dtype: bf16, layer: 1, after: 1}\n"           // 17
    "  - {name: c, shape: [3], unused: true}\n"                                          // 18
    "arrival: [2, 1, 0]\n";                                                              // 19

const std::string scenario_of_it =
    "workload: {model: d.yaml}\ncluster: {device: h100-sxm, ranks_per_node: 2, intra_node: "
    "nvlink4, skew: 0 %}\ntraining: {find_unused_parameters: true}\n";

std::string with(int number, const std::string& text) {
  std::istringstream lines(good_description);
  std::string all, line;
  for (int i = 1; std::getline(lines, line); ++i) all += (i == number ? text : line) + "\n";
  return all;
}

std::string in_place_of(std::string text, const std::string& part, const std::string& other) {
  return text.replace(text.find(part), part.size(), other);
}

std::string refused(const Scratch& scratch, const std::string& description) {
  scratch.write("d.yaml", description);
  return refusal(scratch, scenario_of_it);
}

Scenario scenario_of(const Scratch& scratch, const std::string& description,
                     const std::vector<Setting>& set = {}) {
  scratch.write("d.yaml", description);
  return read_scenario(scratch.write("s.yaml", scenario_of_it), set);
}

TEST_CASE("a description becomes layers of kernels with their shapes, bytes and launches",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const Scenario scenario = scenario_of(scratch, good_description);
  const Workload& workload = scenario.workload;
  CHECK(workload.name == "d");
  CHECK(workload.source == "by hand");
  CHECK(scenario.optimizer == Optimizer::sgd_plain);
  CHECK(has_shapes(workload));
  REQUIRE(workload.layers.size() == 2);
  const Layer& a = workload.layers[0];
  // The product; then what only moves memory, together: 2304 + 2048 and 2048 + 2048 bytes.
  REQUIRE(a.forward.size() == 2);
  CHECK(a.forward[0].gemm == Gemm{8, 64, 32, 1});
  CHECK(a.forward[0].traffic == Bytes{9216 + 2048});
  CHECK(a.forward[1].traffic == Bytes{8448});
  CHECK(a.forward[1].launches == 3);
  // Repetitions of a product are products of their own, those of what moves memory are launches.
  const Layer& b = workload.layers[1];
  REQUIRE(b.forward.size() == 3);
  CHECK(b.forward[1].gemm == Gemm{8, 64, 32, 1});
  CHECK(b.forward[2].launches == 3);
  CHECK(b.forward[2].traffic == Bytes{3 * 4352});
  CHECK(arrival_order(workload) == std::vector<int>{2, 1, 0, 3});
}

TEST_CASE("parameters are of the kernels that hold the entries their modules run",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  // a's forward pass is a product and, in one kernel, what only moves memory behind it. Its
  // backward pass has entries 0 to 2 in one kernel, which completes a.bias, then 3 and 4, 5, and 6.
  const std::string ran =
      in_place_of(with(15,
                       "  - {name: a.weight, shape: [64, 32], layer: 0, after: 5, forward: [0, 2], "
                       "backward: [3, 6]}"),
                  "after: 2}", "after: 2, forward: [1, 1], backward: [0, 3]}");
  const Workload workload = scenario_of(scratch, ran).workload;
  REQUIRE(workload.layers[0].backward.size() == 4);
  CHECK(workload.parameters[0].forward == KernelRange{0, 1});
  CHECK(workload.parameters[0].backward == KernelRange{1, 3});
  CHECK(workload.parameters[1].forward == KernelRange{1, 1});
  CHECK(workload.parameters[1].backward == KernelRange{0, 1});
  CHECK(!workload.parameters[2].forward);  // nobody said
  CHECK(!workload.parameters[2].backward);

  const auto of_weight = [&](const std::string& keys) {
    return refused(scratch, with(15, "  - {name: a.weight, shape: [64, 32], layer: 0, after: 5, " +
                                         keys + "}"));
  };
  CHECK_THAT(of_weight("forward: [2, 1]"),
             Catch::Contains("d.yaml:15:68: parameters.forward: expected the first and the last "
                             "entry, such as [3, 5]"));
  CHECK_THAT(of_weight("forward: 2"), Catch::Contains("the first and the last entry"));
  CHECK_THAT(of_weight("forward: [0, 3]"),
             Catch::Contains("d.yaml:15:68: parameters.forward: the forward pass of layer a has 3 "
                             "entries, counted from 0"));
  CHECK_THAT(of_weight("backward: [5, 7]"),
             Catch::Contains("the backward pass of layer a has 7 entries, counted from 0"));
  CHECK_THAT(of_weight("backward: [0, 4]"),
             Catch::Contains("its gradient is complete behind entry 5 (after), which its module "
                             "does not run"));
  CHECK_THAT(refused(scratch, with(18, "  - {name: c, shape: [3], unused: true, forward: [0, 0]}")),
             Catch::Contains("the parameter is unused, and nothing runs for it: take this out"));
  CHECK_THAT(refused(scratch, good_description +
                                  "frozen_parameters: [{name: x, shape: [2], forward: [3, 3]}]\n"),
             Catch::Contains("the forward pass of layer a has 3 entries, counted from 0"));
}

TEST_CASE(
    "a call without a described host time takes 7.58 us an operation and 5 us a further launch",
    "[scenarios][description_reader]") {
  const Scratch scratch;
  const auto host_of = [&](const std::string& keys) {
    const std::string relu = "  - {op: relu, kind: memory, read: 2048, written: 2048";
    Duration sum{};
    for (const Layer& layer : scenario_of(scratch, with(9, relu + keys + "}")).workload.layers)
      for (const Kernel& kernel : layer.forward) {
        REQUIRE(kernel.by_class);
        sum += kernel.by_class->host;
      }
    return sum;
  };
  CHECK(host_of("") == host_of(", host: 7.58 us"));
  CHECK(host_of(", launches: 4, operations: 1") ==
        host_of(", launches: 4, operations: 1, host: 22.58 us"));
  CHECK(host_of(", launches: 4, operations: 2") ==
        host_of(", launches: 4, operations: 2, host: 25.16 us"));
  CHECK(host_of(", launches: 2, operations: 0") ==
        host_of(", launches: 2, operations: 0, host: 10 us"));
  CHECK(host_of(", launches: 4") > host_of(""));
}

TEST_CASE("kernels are not joined across the end of a gradient, even inside a repetition",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const Workload workload = scenario_of(scratch, good_description).workload;
  // Backward of a: relu, four sums, the product, add. The bias is complete behind the second sum
  // (entries 0, 1, 2), the weight behind the product (entry 5).
  const std::vector<Kernel>& kernels = workload.layers[0].backward;
  REQUIRE(kernels.size() == 4);
  CHECK(kernels[0].launches == 2 + 2);
  CHECK(kernels[0].traffic == Bytes{4096 + 2 * 110});
  CHECK(kernels[1].launches == 2);
  CHECK(kernels[1].traffic == Bytes{2 * 110});
  CHECK(kernels[2].gemm);
  CHECK(kernels[3].traffic == Bytes{4352});
  CHECK(workload.parameters[0].ready_after == 2);
  CHECK(workload.parameters[1].ready_after == 0);
  CHECK(workload.parameters[2].layer == 1);
  CHECK(workload.parameters[2].ready_after == 1);
}

TEST_CASE("joined or not, a gradient is complete when the kernels up to it have run",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const auto step_of = [&](const std::string& description) {
    const Scenario scenario = scenario_of(scratch, description);
    return predict(model_of(scenario), scenario.training).metrics;
  };
  // Products of no size end the joining: between all that b's forward pass only moves.
  const StepMetrics joined = step_of(good_description);
  CHECK(joined.forward > Duration::zero());
}

TEST_CASE("a description says what its layers keep, and so the memory of a step is known",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const Scenario scenario = scenario_of(scratch, good_description);
  REQUIRE(has_memory(scenario.workload));
  CHECK(scenario.workload.layers[0].memory[0].kept == Bytes{4096});
  // The gradients of layer a: 64 x 32 and 64 elements of 4 bytes.
  CHECK(scenario.workload.layers[0].memory[0].gradients == Bytes{4 * (64 * 32 + 64)});
  const Step step = predict(model_of(scenario), scenario.training);
  const StepMemory memory =
      step_memory(scenario.workload, scenario.optimizer, scenario.training, step.job());
  CHECK(memory.knows_activations);
  CHECK(memory.most[program::Holds::activation] == Bytes{4096 + 1024});
  // Memory is unknown where it is not known of one layer.
  const Scenario unknown = scenario_of(
      scratch, with(13, "  - {name: b, forward: [[0, 2], [1, 3]], backward: [1, 0, 2]}"));
  CHECK(!has_memory(unknown.workload));
}

TEST_CASE("what is alive at most, what is frozen and the batch are read",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const std::string peaks = in_place_of(
      with(12,
           "  - {name: a, forward: [0, 1, 2], backward: [2, [3, 4], 0, 1], kept: 4096, "
           "forward_peak: 5000, backward_peak: 6000, backward_peak_in_fp32: 7000}"),
      "arrival:",
      "frozen: [{tensors: 190, bytes: 1594613760}, {tensors: 1, bytes: 8}]\ninputs: 65600\n"
      "frozen_parameters: [{name: x.weight, shape: [2, 3], dtype: bf16, layer: 1}]\n"
      "collectives: [{op: all_gather, pass: forward, module: norm, bytes: 516, count: 20}]\n"
      "arrival:");
  const Scenario scenario = scenario_of(scratch, peaks);
  CHECK(scenario.workload.frozen == Bytes{1594613760 + 8});
  CHECK(scenario.workload.inputs == Bytes{65600});
  REQUIRE(scenario.workload.frozen_parameters.size() == 1);
  CHECK(scenario.workload.frozen_parameters[0].name == "x.weight");
  CHECK(scenario.workload.frozen_parameters[0].size() == Bytes{12});
  CHECK(scenario.workload.frozen_parameters[0].layer == 1);
  CHECK(scenario.workload.workspaces == Bytes{64 << 20});
  CHECK(scenario.workload.layers[0].memory[0].forward_peak == Bytes{5000});
  CHECK(scenario.workload.layers[0].memory[0].backward_peak == Bytes{6000});
  CHECK(!scenario.workload.layers[1].memory[0].forward_peak);
  // With a convolution that multiplies in fp32, on a device without TF32 or where it is not wanted.
  const std::string conv = in_place_of(peaks, "{op: mm, kind: gemm,", "{op: conv, kind: conv,");
  const auto backward = [&](const std::vector<Setting>& set) {
    return scenario_of(scratch, conv, set).workload.layers[0].memory[0].backward_peak;
  };
  CHECK(backward({}) == Bytes{6000});
  CHECK(backward({{"workload.compute", "fp32"}}) == Bytes{7000});
  CHECK(backward({{"cluster.device", "v100"}}) == Bytes{7000});
  CHECK_THAT(refused(scratch, in_place_of(peaks, "pass: forward", "pass: sideways")),
             Catch::Contains("pass: unknown name \"sideways\"; known: forward, backward"));
}

TEST_CASE("a collective of no module is the model's own, and stands where it says",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const Scenario scenario = scenario_of(
      scratch,
      in_place_of(good_description, "arrival:",
                  "collectives: [{op: all_reduce, pass: backward, bytes: 8192, layer: 0, after: 5}]"
                  "\narrival:"));
  REQUIRE(scenario.workload.collectives.size() == 1);
  const OwnCollective& sent = scenario.workload.collectives.front();
  CHECK(sent.kind == OwnCollective::Kind::all_reduce);
  CHECK(sent.size == Bytes{8192});
  CHECK(sent.backward);
  CHECK(sent.layer == 0);
}

TEST_CASE("formats that are only stored have their size, and buckets of their own",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const Scenario scenario =
      scenario_of(scratch, with(17,
                                "  - {name: b.weight, shape: [32, 64], dtype: complex64, layer: 1, "
                                "after: 1}"));
  CHECK(scenario.workload.parameters[2].size() == Bytes{8 * 32 * 64});
  const Step step = predict(model_of(scenario), scenario.training);
  REQUIRE(step.job().groups.size() == 2);
  for (const DType type : stored_dtypes) CHECK(dtype_named(name_of(type)) == type);
  CHECK(size_of(DType::fp64) == Bytes{8});
  CHECK(size_of(DType::complex128) == Bytes{16});
  CHECK(size_of(DType::fp8_e4m3) == Bytes{1});
  // What a comm hook computes is not known for them.
  CHECK_THAT(refusal(scratch, scenario_of_it, {{"training.comm_hook", "powersgd"}}),
             Catch::Contains("comm hooks are modelled for gradients of fp32, bf16 and fp16, and "
                             "that of b.weight is complex64: take comm_hook out"));
  // No device multiplies them.
  CHECK_THAT(
      refused(scratch, with(7,
                            "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, type: "
                            "fp64, read: 9, written: 2}")),
      Catch::Contains("unknown name \"fp64\"") && Catch::Contains("known: fp32, tf32, bf16, fp16"));
}

TEST_CASE("a described size is fixed: a scenario may repeat it, not change it",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  scratch.write("d.yaml", good_description);
  const auto said = [&](const std::string& key, const std::string& value) {
    return refusal(scratch, scenario_of_it, {{key, value}});
  };
  CHECK(said("workload.batch", "8").empty());
  CHECK(said("workload.batch", "16") ==
        "--set workload.batch=16: the model was described with batch 8: take the key out, or "
        "describe the model again (ddpsim describe) with another value");
  CHECK_THAT(said("workload.sequence", "16"), Catch::Contains("samples that are no sequences"));
  CHECK_THAT(said("workload.image", "224"), Catch::Contains("pictures of one size"));
  CHECK(said("workload.dtype", "fp32").empty());
  CHECK_THAT(said("workload.dtype", "bf16"), Catch::Contains("described with dtype fp32"));
  CHECK_THAT(said("workload.compute", "bf16"), Catch::Contains("described with compute fp32"));
  // What multiplies fp32 is the device's choice.
  CHECK(said("workload.compute", "tf32").empty());
  CHECK(scenario_of(scratch, good_description, {{"workload.compute", "tf32"}})
            .workload.layers[0]
            .forward[0]
            .type == DType::tf32);
  CHECK(scenario_of(scratch, good_description, {{"workload.optimizer", "adam"}}).optimizer ==
        Optimizer::adam);
  // A described sequence may be repeated.
  scratch.write("d.yaml", with(3, "batch: 8\nsequence: 4"));
  CHECK(said("workload.sequence", "4").empty());
  CHECK_THAT(said("workload.sequence", "5"), Catch::Contains("described with sequence 4"));
}

TEST_CASE("convolutions in fp32 are multiplied in tf32 where the device has it",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const std::string description =
      with(7, "  - {op: conv, kind: conv, gemm: {m: 8, n: 64, k: 32}, read: 9, written: 2}");
  const auto type = [&](const std::string& device, const std::vector<Setting>& more = {}) {
    std::vector<Setting> set{{"cluster.device", device}};
    set.insert(set.end(), more.begin(), more.end());
    return scenario_of(scratch, description, set).workload.layers[0].forward[0].type;
  };
  CHECK(type("a100-80") == DType::tf32);
  CHECK(type("v100") == DType::fp32);
  CHECK(type("a100-80", {{"workload.compute", "fp32"}}) == DType::fp32);
}

TEST_CASE("a device that does not multiply what was described is refused",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  scratch.write("d.yaml",
                with(7,
                     "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, type: bf16, read: 9, "
                     "written: 2}"));
  CHECK(refusal(scratch, scenario_of_it).empty());
  CHECK(refusal(scratch, scenario_of_it, {{"cluster.device", "v100"}}) ==
        "s.yaml:1:11: workload: device v100 does not multiply bf16, in which the model was "
        "described: describe it anew in another type");
}

TEST_CASE("a device need not multiply in the type of what is only moved",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  scratch.write("d.yaml",
                with(8, "  - {op: add, kind: memory, type: bf16, read: 2304, written: 2048}"));
  CHECK(refusal(scratch, scenario_of_it, {{"cluster.device", "v100"}}).empty());
}

TEST_CASE("a description stands where a scenario does, with a cluster",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const std::filesystem::path file = scratch.write("d.yaml", good_description);
  CHECK(is_workload_profile(file));
  const Scenario scenario =
      read_scenario(file, {{"cluster", "dgx-h100"}, {"training.find_unused_parameters", "true"}});
  CHECK(scenario.cluster.ranks() == 8);
  CHECK(scenario.workload.name == "d");
  REQUIRE(scenario.described);
  CHECK(scenario.described->source == "by hand");
  CHECK(scenario.described->batch == 8);
  for (const std::vector<Setting>& without : {std::vector<Setting>{},
                                              {{"training.find_unused_parameters", "true"}},
                                              {{"clusters.device", "h100-sxm"}}})
    CHECK_THROWS_WITH(read_scenario(file, without), Catch::Contains("say what it is to run on"));
  // What the description's unused parameter asks for is told once there is a cluster.
  CHECK_THROWS_WITH(read_scenario(file, {{"cluster", "dgx-h100"}}),
                    !Catch::Contains("say what it is to run on"));
}

TEST_CASE("a description on one rank is compared with nothing, unless it is asked for",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const std::filesystem::path file = scratch.write("d.yaml", good_description);
  std::vector<Setting> set{{"cluster.device", "h100-sxm"},
                           {"training.find_unused_parameters", "true"}};
  CHECK(read_scenario(file, set).compare == std::vector{Strategy::none});
  set.emplace_back("compare", "[naive, bucketed]");
  CHECK(read_scenario(file, set).compare == std::vector{Strategy::naive, Strategy::bucketed});
  set = {{"cluster", "dgx-h100"}, {"training.find_unused_parameters", "true"}};
  CHECK(read_scenario(file, set).compare.size() == 4);
}

TEST_CASE("a fused kernel of attention is a product of the visible scores alone",
          "[scenarios][description_reader]") {
  // 2 samples x 3 heads of 16 queries and keys of 8 elements. Counted: two products of 2 x 16 x 16
  // x 8 each; a causal mask leaves 16 x 17 / 2 = 136 of 256 scores of a head.
  const Attention whole{2, 3, 16, 16, 8, false, false};
  CHECK(counted_flops(whole) == 6 * 2 * 2 * 16 * 16 * 8);
  CHECK(fused_attention_gemm(whole).flops() == counted_flops(whole));
  Attention causal = whole;
  causal.causal = true;
  CHECK(counted_flops(causal) == counted_flops(whole));
  CHECK(visible_scores(causal) == 6 * 136);
  // 2 x 8.5 keys of a query.
  CHECK(fused_attention_gemm(causal) == Gemm{16, 8, 17, 6});
  // Backward five products instead of two.
  Attention backward = whole;
  backward.backward = true;
  CHECK(counted_flops(backward) == 6 * 5 * 2 * 16 * 16 * 8);
  CHECK(fused_attention_gemm(backward).flops() == counted_flops(backward));
  // More queries than keys: those behind the last key see all.
  const Attention longer{1, 1, 4, 2, 8, true, false};
  CHECK(visible_scores(longer) == 1 + 2 + 2 + 2);

  // Values of 24 elements beside keys of 8. Forward 8 + 24 elements of each score: two products of
  // 16. Backward 3 x 8 + 2 x 24 = 72: five products of 14.4, taken as 15 over 72 x 16 / 15 = 76.8,
  // rounded up, of 5 x 16 = 80 queries.
  Attention wide = whole;
  wide.value_size = 24;
  CHECK(counted_flops(wide) == 6 * 2 * 16 * 16 * (8 + 24));
  CHECK(fused_attention_gemm(wide) == Gemm{16, 16, 32, 6});
  wide.backward = true;
  CHECK(counted_flops(wide) == 6 * 2 * 16 * 16 * 72);
  CHECK(fused_attention_gemm(wide) == Gemm{16, 15, 77, 6});

  const Scratch scratch;
  const Scenario scenario = scenario_of(
      scratch,
      with(7,
           "  - {op: flash, kind: attention, attention: {batch: 2, heads: 3, queries: 16, keys: "
           "16, size: 8, causal: true}, type: bf16, read: 9, written: 2, flops: 49152}"));
  CHECK(scenario.workload.layers[0].forward[0].gemm == Gemm{16, 8, 17, 6});
  // The kernel runs five times: once in either pass of a, twice and once in those of b.
  REQUIRE(scenario.described);
  CHECK(scenario.described->attention_flops == 5 * 49152);
  CHECK(scenario.described->masked_flops == Approx(5 * 49152 * (1 - 136.0 / 256)));
}

TEST_CASE("attention whose values are wider than its keys is read so",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const std::string shape =
      "  - {op: flash, kind: attention, attention: {batch: 2, heads: 3, queries: 16, keys: 16, "
      "size: 8, value_size: 24}, type: bf16, read: 9, written: 2, flops: ";
  // 6 heads x 16 x 16 scores x (8 + 24) elements, a multiplication and an addition each.
  CHECK(scenario_of(scratch, with(7, shape + "98304}")).workload.layers[0].forward[0].gemm ==
        Gemm{16, 16, 32, 6});
  CHECK(refused(scratch, with(7, shape + "98000}")) ==
        "d.yaml:7:155: kernels.flops: the shape makes it 98304");
}

TEST_CASE("kernels behind another of their operation are of its call",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  // Line 9 launches two kernels, of which a library enqueues the second.
  const Workload workload =
      scenario_of(scratch, with(9,
                                "  - {op: relu, kind: memory, read: 2048, written: 2048, launches: "
                                "2, operations: 1}"))
          .workload;
  // Forward of a: a product, then add and relu as one kernel of three launches.
  REQUIRE(workload.layers[0].forward.size() == 2);
  CHECK(workload.layers[0].forward[1].launches == 3);
  CHECK(workload.layers[0].forward[1].calls == 2);
  CHECK(scenario_of(scratch, with(8,
                                  "  - {op: add, kind: memory, read: 2304, written: 2048, "
                                  "operations: 0}"))
            .workload.layers[0]
            .forward[1]
            .calls == 1);
  CHECK_THAT(refused(scratch, with(8,
                                   "  - {op: add, kind: memory, read: 2304, written: 2048, "
                                   "operations: 2}")),
             Catch::EndsWith("expected at most 1, as many as there are launches"));
}

TEST_CASE("a description says whether gradients are clipped, and a scenario otherwise",
          "[scenarios][description_reader]") {
  const Scratch scratch;
  const auto optimizer_of = [&](const std::string& description,
                                const std::vector<Setting>& set = {}) {
    const Scenario scenario = scenario_of(scratch, description, set);
    return predict(model_of(scenario), scenario.training).metrics.optimizer;
  };
  const std::string clipped = with(5, "optimizer: sgd-plain\nclip_gradients: true");
  const Duration without = optimizer_of(good_description);
  CHECK(optimizer_of(clipped) > without);
  CHECK(optimizer_of(clipped, {{"workload.clip_gradients", "false"}}) == without);
  CHECK(optimizer_of(good_description, {{"workload.clip_gradients", "true"}}) ==
        optimizer_of(clipped));
  CHECK_THROWS_WITH(optimizer_of(clipped, {{"training.comm_hook", "optimizer_overlap"}}),
                    Catch::Contains("take workload.clip_gradients out"));
}

TEST_CASE("indices of a description point somewhere", "[scenarios][description_reader]") {
  const Scratch scratch;
  CHECK(refused(scratch, good_description).empty());
  CHECK(refused(scratch, with(12, "  - {name: a, forward: [0, 4], backward: [2, 0, 1]}")) ==
        "d.yaml:12:28: layers.forward: there is no kernel 4: there are 4, counted from 0");
  CHECK(refused(scratch, with(13, "  - {name: b, backward: [1, [4, 2]]}")) ==
        "d.yaml:13:29: layers.backward: there is no kernel 4: there are 4, counted from 0");
  CHECK_THAT(refused(scratch, with(12, "  - {name: a, forward: [-1]}")),
             Catch::StartsWith("d.yaml:12:25: layers.forward: "));
  CHECK(refused(scratch, with(15, "  - {name: a.weight, shape: [64], layer: 2, after: 0}")) ==
        "d.yaml:15:42: parameters.layer: there is no layer 2: there are 2, counted from 0");
  CHECK(refused(scratch, with(15, "  - {name: a.weight, shape: [64], layer: 0, after: 7}")) ==
        "d.yaml:15:52: parameters.after: the backward pass of layer 0 (a) has 7 entries, counted "
        "from 0");
  CHECK_THAT(refused(scratch, with(15, "  - {name: a.weight, shape: [64], after: 7}")),
             Catch::Contains("missing key \"layer\""));
  CHECK(refused(scratch, with(19, "arrival: [2, 1, 4]")) ==
        "d.yaml:19:17: arrival: there is no parameter 4: there are 4, counted from 0");
  CHECK(refused(scratch, with(19, "arrival: [2, 1, 3]")) ==
        "d.yaml:19:17: arrival: parameter 3 (c) is unused: its hook never fires");
  CHECK(refused(scratch, with(19, "arrival: [2, 2, 1]")) ==
        "d.yaml:19:14: arrival: parameter 2 stands here twice");
  CHECK(refused(scratch, with(19, "arrival: [2, 1]")) ==
        "d.yaml:19:10: arrival: parameter 0 (a.weight) is missing");
}

TEST_CASE("what a kernel says of itself fits together", "[scenarios][description_reader]") {
  const Scratch scratch;
  CHECK(refused(scratch, with(7, "  - {op: mm, kind: gemm, read: 9, written: 2}")) ==
        "d.yaml:7:5: kernels: a kernel of kind gemm needs the key \"gemm\"");
  CHECK(refused(scratch, with(7,
                              "  - {op: mm, kind: memory, gemm: {m: 1, n: 1, k: 1}, read: 9, "
                              "written: 2}")) ==
        "d.yaml:7:34: kernels.gemm: a kernel of kind memory has no gemm");
  CHECK(refused(scratch, with(7,
                              "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, read: 9, "
                              "written: 2, flops: 16384}")) ==
        "d.yaml:7:82: kernels.flops: the shape makes it 32768 (2 m n k batch)");
  // An index and a count are two numbers, in what an editor is told too.
  CHECK_THAT(refused(scratch, with(12, "  - {name: a, forward: [[0, 1, 2]], backward: [0]}")),
             Catch::StartsWith("d.yaml:12:25: layers.forward: expected the index of a kernel"));
  CHECK_THAT(refused(scratch, with(7,
                                   "  - {op: mm, kind: gemm, gemm: {m: 0, n: 1, k: 1}, read: 9, "
                                   "written: 2}")),
             Catch::StartsWith("d.yaml:7:36: kernels.gemm.m: "));
  CHECK_THAT(refused(scratch, with(8, "  - {op: add, kind: memory, read: -1, written: 2}")),
             Catch::StartsWith("d.yaml:8:35: kernels.read: "));
  CHECK_THAT(refused(scratch, with(16,
                                   "  - {name: a.bias, shape: [1099511627776, 1099511627776], "
                                   "layer: 0, after: 2}")),
             Catch::Contains("more than any memory holds"));
  CHECK_THAT(refused(scratch, with(16, "  - {name: a.weight, shape: [64], layer: 0, after: 2}")),
             Catch::Contains("two parameters are named a.weight"));
}

TEST_CASE("short descriptions of endless steps are refused before they take memory",
          "[scenarios][description_reader][hostile]") {
  const Scratch scratch;
  CHECK_THAT(refused(scratch, with(12,
                                   "  - {name: a, forward: [[0, 1000001]], backward: [2, "
                                   "[3, 4], 0, 1]}")),
             Catch::StartsWith("d.yaml:12:29: layers.forward: "));
  CHECK(refused(scratch, with(12,
                              "  - {name: a, forward: [[0, 1000000], 1], backward: [2, "
                              "[3, 4], 0, 1]}")) ==
        "d.yaml:12:5: layers: up to this layer there are 1000008 kernels, each repetition "
        "counted: at most 1000000 are read");
  // Each alias is a layer of half a million kernels.
  std::string aliases = "  - &a {name: a, forward: [[1, 500000]], backward: [2, [3, 4], 0, 1]}\n";
  for (int i = 0; i < 1000; ++i) aliases += "  - *a\n";
  CHECK_THAT(refused(scratch, with(12, aliases)), Catch::Contains("at most 1000000 are read"));
  // Launches count as well: add runs once in either pass of a, and with b's forward pass the step
  // comes to 200 010 + 2 + 8 x 100 000.
  const std::string many =
      with(8, "  - {op: add, kind: memory, read: 1, written: 1, launches: 100000}");
  CHECK(refused(scratch, many).empty());
  CHECK(refused(scratch, in_place_of(many, "[1, 3]", "[1, 8]")) ==
        "d.yaml:13:33: layers.forward: up to here the step launches 1000012 kernels: at most "
        "1000000 are read");
  // And bytes: 1025 x 2^50 are more than 2^60.
  const std::string large =
      with(10, "  - {op: sum, kind: memory, read: 1125899906842624, written: 1}");
  CHECK_THAT(refused(scratch, in_place_of(large, "[3, 4]", "[3, 1025]")),
             Catch::Contains("the step moves 1.15e+18 bytes"));
  // And operations, which follow from shapes: each product has 5 x 10^18. Two of them are in layer
  // a, and two more come with b's forward pass: 2 x 10^19, and a step has at most 10^19.
  CHECK_THAT(refused(scratch, with(7,
                                   "  - {op: mm, kind: gemm, gemm: {m: 2500000, n: 1000000, k: "
                                   "1000000}, read: 1, written: 1}")),
             Catch::Contains("the step has 2e+19 multiplications and additions"));
}

TEST_CASE("a written description reads back to itself", "[scenarios][description_reader]") {
  const Scratch scratch;
  const auto read = [&](const std::string& name) {
    return read_workload_description(Yaml::load(scratch.path(name)));
  };
  scratch.write("in.yaml", good_description);
  const std::string once = document(workload_description_map(), read("in.yaml"), "");
  scratch.write("out.yaml", once);
  CHECK(document(workload_description_map(), read("out.yaml"), "") == once);
  CHECK(read("out.yaml").layers[0].backward == read("in.yaml").layers[0].backward);
}

}  // namespace
}  // namespace description_reader_test
}  // namespace ddpsim
